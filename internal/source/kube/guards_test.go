package kube

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func guardOf(name string) *v1alpha1.AuthPolicy {
	p := &v1alpha1.AuthPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "guarded", Name: name}}
	ref := gwv1.LocalPolicyTargetReferenceWithSectionName{}
	ref.Group, ref.Kind, ref.Name = gwv1.GroupName, "Gateway", "web"
	p.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{ref}
	p.Spec.Authentication = map[string]v1alpha1.Authentication{"anyone": {Anonymous: &v1alpha1.Anonymous{}}}
	return p
}

// TestGuardsOutliveTheirDefinition protects all that policies guard from whoever deletes their
// CustomResourceDefinition: the API server deletes every policy with it. One that a person
// deletes goes. The others stay until they are there again, which they can't be before the
// definition is.
func TestGuardsOutliveTheirDefinition(t *testing.T) {
	c := newCluster(t, apiserver.Options{Channel: apiserver.Standard})
	crds := apiserver.CRDs(t, apiserver.Standard)
	var guarding *apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		if crd.Name == kind.All.Of(kind.AuthPolicy).DefinitionName() {
			guarding = crd
		}
	}
	c.create(t, namespace("guarded", nil), guardOf("a"), guardOf("b"), guardOf("c"))
	r, _ := read(t, c.Config, Options{})
	r.has("AuthPolicy", "guarded/a", "guarded/b", "guarded/c")
	c.delete(t, guardOf("c"))
	r.has("AuthPolicy", "guarded/a", "guarded/b")

	apiserver.RemoveCRDs(t, c.Config, guarding)
	r.wait("both are kept", func() bool { return r.Kept()[kind.AuthPolicy] == 2 })
	r.wait("the kind is off", func() bool { return r.unread("AuthPolicy") != "" })
	r.has("AuthPolicy", "guarded/a", "guarded/b")
	if n := r.Kept()[kind.AuthPolicy]; n != 2 {
		t.Errorf("%d policies are kept", n)
	}

	apiserver.InstallCRDs(t, c.Config, guarding)
	c.create(t, guardOf("b"))
	r.wait("b is there again", func() bool { return r.Kept()[kind.AuthPolicy] == 1 })
	r.has("AuthPolicy", "guarded/a", "guarded/b")
	c.create(t, guardOf("a"))
	r.wait("so is a", func() bool { return r.Kept()[kind.AuthPolicy] == 0 })
	c.delete(t, guardOf("b"))
	r.has("AuthPolicy", "guarded/a")
}
