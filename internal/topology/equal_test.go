package topology

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// otherSelector is for selectors, which are interfaces. Objects are replaced as a whole
// too: they are compared by their pointers.
func otherSelector(path string) equaltest.Option {
	return equaltest.Other(path, labels.SelectorFromSet(labels.Set{"team": "a"}))
}

// A node that equals the last one changes nothing that reads it.
func TestNodesCompareEachField(t *testing.T) {
	equaltest.Fields(t, &Class{}, (*Class).Equal, equaltest.Other("Object", &gwv1.GatewayClass{}))
	equaltest.Fields(t, &Gateway{}, (*Gateway).Equal, equaltest.Other("Object", &gwv1.Gateway{}),
		otherSelector("Listeners[].Namespaces.Selector"))
	equaltest.Fields(t, &ListenerSet{}, (*ListenerSet).Equal, equaltest.Other("Object", &gwv1.ListenerSet{}),
		otherSelector("Listeners[].Namespaces.Selector"))
	equaltest.Fields(t, &Listener{}, (*Listener).Equal, otherSelector("Namespaces.Selector"))
	equaltest.Fields(t, NamespaceRule{}, NamespaceRule.Equal, otherSelector("Selector"))
	equaltest.Fields(t, &ClientValidation{}, (*ClientValidation).Equal)
	// The names and the validity are read from the chain.
	equaltest.Fields(t, &Certificate{}, (*Certificate).Equal, equaltest.Ignored("Names", "Validity"))
	equaltest.Fields(t, &Authority{}, (*Authority).Equal)
	equaltest.Fields(t, &Route{}, (*Route).Equal, equaltest.Other("Object", &gwv1.HTTPRoute{}))
	equaltest.Fields(t, BackendRef{}, BackendRef.Equal)
	equaltest.Fields(t, &Attachment{}, (*Attachment).Equal)
	equaltest.Fields(t, &BackendTLSPolicy{}, (*BackendTLSPolicy).Equal, equaltest.Other("Object", &gwv1.BackendTLSPolicy{}))
	equaltest.Fields(t, &BackendTrafficPolicy{}, (*BackendTrafficPolicy).Equal, equaltest.Other("Object", &gwxv1alpha1.XBackendTrafficPolicy{}))
	equaltest.Fields(t, &auth.Policy{}, (*auth.Policy).Equal, equaltest.Other("Object", &v1alpha1.AuthPolicy{}))
	equaltest.Fields(t, &limits.Policy{}, (*limits.Policy).Equal, equaltest.Other("Object", &v1alpha1.RateLimitPolicy{}))
	equaltest.Fields(t, &traffic.Policy{}, (*traffic.Policy).Equal, equaltest.Other("Object", &v1alpha1.TrafficPolicy{}))
	equaltest.Fields(t, &XBackend{}, (*XBackend).Equal, equaltest.Other("Object", &gwxv1alpha1.XBackend{}))
	equaltest.Fields(t, &InferencePool{}, (*InferencePool).Equal, equaltest.Other("Object", &poolsv1.InferencePool{}))
	equaltest.Fields(t, &Pod{}, (*Pod).Equal)
}

// So does a value of the tables between them.
func TestInnerTablesCompareEachField(t *testing.T) {
	// The listeners follow from the object, the parent and the edge.
	equaltest.Fields(t, &set{}, (*set).equal, equaltest.Other("object", &gwv1.ListenerSet{}),
		equaltest.Other("parent", &gwv1.Gateway{}), equaltest.Other("listeners", []*draft{{}}), equaltest.Ignored("listeners"))
	equaltest.Fields(t, setParentState{}, setParentState.equal)
	equaltest.Fields(t, section{}, section.equal, otherSelector("namespaces.Selector"), otherSelector("names.selectors[]"))
	equaltest.Fields(t, &setSections{}, (*setSections).equal, otherSelector("list[].namespaces.Selector"), otherSelector("list[].names.selectors[]"))
	equaltest.Fields(t, portRequest{}, portRequest.Equal)
	equaltest.Fields(t, struct{ parents []Parent }{},
		func(a, b struct{ parents []Parent }) bool { return sameParents(a.parents, b.parents) }, equaltest.NotNil("parents[].Ref"))
	equaltest.Fields(t, struct{ portConflicts }{}, func(a, b struct{ portConflicts }) bool { return a.Equal(b.portConflicts) })
	equaltest.Fields(t, struct{ namespaceLabels }{}, func(a, b struct{ namespaceLabels }) bool { return a.Equal(b.namespaceLabels) })
}
