package kube

import (
	"testing"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// unread is why a kind is not read, as far as that was handed over.
func (r *reading) unread(kind string) (why string) {
	for _, b := range r.batches {
		if now, told := b.Unread[kind]; told {
			why = now
		}
	}
	return why
}

// TestUnreadKindsAreTold protects users from features that the cluster doesn't have.
func TestUnreadKindsAreTold(t *testing.T) {
	c := newCluster(t, apiserver.Options{})
	r, _ := read(t, c.Config, Options{Experimental: true})
	first := r.batches[0].Unread
	for _, kind := range []string{"ClusterTrustBundle", "HTTPRoute", "XBackend"} {
		if first[kind] != notDefined {
			t.Errorf("of %s it is said: %q", kind, first[kind])
		}
	}
	if why, told := first["Service"]; told {
		t.Errorf("of Services it is said: %q", why)
	}
	apiserver.InstallCRDs(t, c.Config, apiserver.CRDs(t, apiserver.Standard)...)
	r.wait("HTTPRoutes are said to be read", func() bool { return r.unread("HTTPRoute") == "" })
}

// TestTrustBundles reads the version of ClusterTrustBundles that many clusters have.
func TestTrustBundles(t *testing.T) {
	c := newCluster(t, apiserver.Options{Args: []string{
		"--feature-gates=ClusterTrustBundle=true", "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true",
	}})
	c.create(t, &certificatesv1beta1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: "clients"},
		Spec:       certificatesv1beta1.ClusterTrustBundleSpec{TrustBundle: string(certs.Authority("clients").PEM())},
	})
	r, _ := read(t, c.Config, Options{Experimental: true})
	if why, told := r.batches[0].Unread["ClusterTrustBundle"]; told {
		t.Errorf("ClusterTrustBundles are not read: %s", why)
	}
	if r.object(object.Key{Kind: kind.ClusterTrustBundle, Name: object.Name{Name: "clients"}}) == nil {
		t.Error("the ClusterTrustBundle is not handed over")
	}
}
