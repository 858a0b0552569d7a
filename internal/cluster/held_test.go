package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
)

func namedGateway(name, class string) string {
	return strings.Replace(gatewayOf(class), "name: web", "name: "+name, 1)
}

// fleetOf are the Service and the Deployment of a Gateway's fleet, by what identifies
// them as long as nobody makes them again; empty for what is not there.
func (in *installed) fleetOf(gateway, class string) [2]types.UID {
	in.Helper()
	var out [2]types.UID
	name := infra.Name(object.Name{Namespace: "team", Name: gateway}, class)
	for i, of := range []metav1.TypeMeta{{APIVersion: "v1", Kind: "Service"}, {APIVersion: "apps/v1", Kind: "Deployment"}} {
		o := &metav1.PartialObjectMetadata{TypeMeta: of}
		err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: name}, o)
		if client.IgnoreNotFound(err) != nil {
			in.Fatal(err)
		}
		if err == nil && o.GetDeletionTimestamp() == nil {
			out[i] = o.GetUID()
		}
	}
	return out
}

// web returns the Gateway of that name with its Accepted condition.
func (in *installed) web() (*gwv1.Gateway, metav1.Condition) {
	in.Helper()
	gw := &gwv1.Gateway{}
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, gw); err != nil {
		in.Fatal(err)
	}
	accepted, _ := condition.Find(gw.Status.Conditions, string(gwv1.GatewayConditionAccepted))
	return gw, accepted
}

// removeClass deletes a class, whoever uses it.
func (in *installed) removeClass(name string) {
	in.Helper()
	if err := in.client.Delete(in.Context(), in.class(name)); err != nil {
		in.Fatal(err)
	}
	in.until("the class is gone", func() bool {
		class := in.class(name)
		if class == nil {
			return true
		}
		class.Finalizers = nil
		_ = in.client.Update(in.Context(), class) // until it succeeds
		return false
	})
}

// TestClassThatDoesNotExist protects fleets and addresses from a typing error in the
// name of a class, and from a class that is deleted and made again, over a restart too.
func TestClassThatDoesNotExist(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"), namedGateway("moved", "gatehouse"), namedGateway("deleted", "gatehouse"),
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: web},
		  spec: {parentRefs: [{name: web}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: example.com}}]}]}}`)
	r := in.start()
	fleets := map[string][2]types.UID{}
	for _, gateway := range []string{"web", "moved", "deleted"} {
		in.until("the Gateway has a fleet", func() bool {
			fleets[gateway] = in.fleetOf(gateway, "gatehouse")
			return fleets[gateway][0] != "" && fleets[gateway][1] != ""
		})
	}
	service := &corev1.Service{}
	if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: infra.Name(webGateway, "gatehouse")}, service); err != nil {
		t.Fatal(err)
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := in.client.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	in.until("the Gateway has an address", func() bool { gw, _ := in.web(); return len(gw.Status.Addresses) > 0 })
	listeners := r.listenersOf(webGateway)
	if len(listeners) == 0 {
		t.Fatal("nothing is served")
	}
	held := func(when, class string) {
		t.Helper()
		in.until("the Gateway says "+when, func() bool {
			gw, accepted := in.web()
			return accepted.Reason == condition.ReasonClassNotFound && accepted.ObservedGeneration == gw.Generation
		})
		gw, accepted := in.web()
		if accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, `"`+class+`"`) {
			t.Errorf("%s Accepted is %v", when, accepted)
		}
		if a := gw.Status.Addresses; len(a) != 1 || a[0].Value != "192.0.2.7" {
			t.Errorf("%s the addresses are %v", when, a)
		}
		if now := in.fleetOf("web", "gatehouse"); now != fleets["web"] {
			t.Errorf("%s the fleet is %v, it was %v", when, now, fleets["web"])
		}
		if diff := cmp.Diff(listeners, r.listenersOf(webGateway)); diff != "" {
			t.Errorf("%s listeners have changed (-before +after):\n%s", when, diff)
		}
		route := &gwv1.HTTPRoute{}
		if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, route); err != nil {
			t.Fatal(err)
		}
		if len(route.Status.Parents) != 1 || route.Status.Parents[0].Conditions[0].Status != metav1.ConditionTrue {
			t.Errorf("%s the route, which is served, says %v", when, route.Status.Parents)
		}
	}

	in.apply(gatewayOf("gatehose"))
	held("after the typing error", "gatehose")

	// A person is told.
	reader, err := kube.Open(in.Config, "team")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := TakeSnapshot(t.Context(), reader, pipeline.ControllerName, "gatehouse-system")
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, it := range snapshot.Live("team").Items {
		told = told || it.Key() == "Gateway team/web" && it.Summary.State == condition.ReasonClassNotFound &&
			it.Summary.Class == "gatehose" && strings.Contains(it.Summary.Message, `"gatehouse"`)
	}
	if !told {
		t.Error("`gatehouse status` doesn't tell of the Gateway")
	}

	// A restart: what goes meanwhile, or goes to others, is not held.
	r.end()
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: theirs}, spec: {controllerName: example.com/theirs}}`,
		namedGateway("moved", "theirs"), namedGateway("deleted", "gatehose"))
	r = in.start()
	in.until("the fleet of a Gateway of another controller goes", func() bool { return in.fleetOf("moved", "gatehouse") == [2]types.UID{} })
	held("after a restart", "gatehose")
	if now := in.fleetOf("deleted", "gatehouse"); now != fleets["deleted"] {
		t.Errorf("a Gateway that was changed while nobody looked has fleet %v, it was %v", now, fleets["deleted"])
	}
	gone := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "deleted"}}
	if err := in.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	in.until("the fleet of a Gateway that is deleted goes", func() bool { return in.fleetOf("deleted", "gatehouse") == [2]types.UID{} })

	// The error is mended. Then the class itself goes, and comes again.
	in.apply(gatewayOf("gatehouse"))
	in.until("the Gateway is accepted", in.gatewayAccepted)
	in.removeClass("gatehouse")
	held("without its class", "gatehouse")
	r.end()
	r = in.start()
	held("after a restart without its class", "gatehouse")
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: ` + pipeline.ControllerName + `}}`)
	in.until("the Gateway is accepted again", in.gatewayAccepted)
	if now := in.fleetOf("web", "gatehouse"); now != fleets["web"] {
		t.Errorf("in the end the fleet is %v, it was %v", now, fleets["web"])
	}

	// The class that was named by mistake comes, and is another controller's.
	in.apply(gatewayOf("gatehose"))
	held("after the second error", "gatehose")
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehose}, spec: {controllerName: example.com/theirs}}`)
	in.until("the fleet goes", func() bool { return in.fleetOf("web", "gatehouse") == [2]types.UID{} })
}
