package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// A controller ends to start anew when the Gateway API's channel changes, and not when
// another thing of its definitions does. The next one reads the channel that there is.
func TestOtherChannel(t *testing.T) {
	slow.Skip(t)
	in := install(t)
	first := in.start()
	annotate := func(name, value string) {
		t.Helper()
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "gateways.gateway.networking.k8s.io"}}
		o.SetGroupVersionKind(kube.DefinitionKind)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"`+name+`": "`+value+`"}}}`))
		if err := in.client.Patch(in.Context(), o, patch); err != nil {
			t.Fatal(err)
		}
	}
	annotate("example.com/note", "nothing")
	in.apply(gatewayOf("gatehouse"))
	in.until("the Gateway is accepted", in.gatewayAccepted)
	if first.anew.Load() {
		t.Error("the controller has ended for nothing")
	}

	annotate("gateway.networking.k8s.io/channel", "standard")
	in.until("the controller has ended", first.anew.Load)
	second := in.start()
	if second.pipeline.Options.Topology.Experimental {
		t.Error("the next one reads the experimental channel")
	}
	annotate("gateway.networking.k8s.io/channel", "experimental")
	in.until("that one has ended too", second.anew.Load)
}
