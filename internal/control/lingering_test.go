package control

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// A class that is deleted while a Gateway uses it counts until the Gateway goes, or
// the class comes back.
func TestClassInUseLingers(t *testing.T) {
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: kind}
	}
	class := &gwv1.GatewayClass{
		TypeMeta: kind(kindGatewayClass), ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec: gwv1.GatewayClassSpec{ControllerName: ControllerName},
	}
	gateway := &gwv1.Gateway{
		TypeMeta: kind(kindGateway), ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"},
		Spec: gwv1.GatewaySpec{
			GatewayClassName: "c",
			Listeners:        []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
		},
	}
	p := NewPipeline(Options{Topology: topology.Options{ControllerName: ControllerName}})
	l := lingering{}
	step := func(b source.Batch) {
		batches := []source.Batch{b}
		l.take(p, batches)
		p.Apply(batches...)
		p.Apply(l.release(p))
	}
	served := func() bool { return p.classInUse("c") }
	classGone := source.Batch{Deleted: []source.Key{source.KeyOf(class)}}

	step(source.Batch{Set: []source.Object{class, gateway}})
	step(classGone)
	if !served() || len(l) != 1 {
		t.Errorf("a class in use ended with its object; lingering: %v", l)
	}
	step(source.Batch{Set: []source.Object{class}})
	if len(l) != 0 {
		t.Errorf("a class that came back lingers: %v", l)
	}
	step(classGone)
	step(source.Batch{Deleted: []source.Key{source.KeyOf(gateway)}})
	if len(l) != 0 || classKnown(p) {
		t.Errorf("the class outlives its last Gateway; lingering: %v", l)
	}
	step(source.Batch{Set: []source.Object{class}})
	step(classGone)
	if len(l) != 0 || classKnown(p) {
		t.Errorf("a class that nobody uses stays; lingering: %v", l)
	}
}

func classKnown(p *Pipeline) bool {
	for _, k := range p.objects() {
		if k == gatewayAPI(kindGatewayClass, ir.Name{Name: "c"}) {
			return true
		}
	}
	return false
}
