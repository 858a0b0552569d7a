package cluster

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// class returns a GatewayClass; nil if there is none.
func (in *installed) class(name string) *gwv1.GatewayClass {
	in.Helper()
	class := &gwv1.GatewayClass{}
	err := in.client.Get(in.Context(), client.ObjectKey{Name: name}, class)
	if client.IgnoreNotFound(err) != nil {
		in.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return class
}

func (in *installed) finalized(class string) bool {
	in.Helper()
	c := in.class(class)
	return c != nil && slices.Contains(c.Finalizers, gwv1.GatewayClassFinalizerGatewaysExist)
}

func gatewayOf(class string) string {
	return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
		spec: {gatewayClassName: ` + class + `, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
}

// A class that Gateways use has the finalizer, others' classes and those that nobody
// uses don't; finalizers of others stay, whatever comes first. What is so is not
// written again.
func TestClassesInUseHaveFinalizer(t *testing.T) {
	in := install(t)
	class := func(name, controller, finalizers string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ` + name +
			`, finalizers: [` + finalizers + `]}, spec: {controllerName: ` + controller + `}}`
	}
	const ours, stale = pipeline.ControllerName, gwv1.GatewayClassFinalizerGatewaysExist
	in.apply(
		class("used", ours, "example.com/one"),
		class("former", ours, "example.com/one, "+stale+", example.com/two"),
		class("foreign", "example.com/theirs", stale),
		class("foreign-used", "example.com/theirs", ""),
		gatewayOf("used"),
	)
	other := `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: theirs},
		spec: {gatewayClassName: foreign-used, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
	in.apply(other)
	foreign, foreignUsed := in.class("foreign"), in.class("foreign-used")

	first := in.start()
	in.until("the class in use has the finalizer, and the former one has none", func() bool {
		return slices.Equal(in.class("used").Finalizers, []string{"example.com/one", stale}) &&
			slices.Equal(in.class("former").Finalizers, []string{"example.com/one", "example.com/two"})
	})
	in.until("the class is accepted", func() bool {
		return meta.IsStatusConditionTrue(in.class("used").Status.Conditions, string(gwv1.GatewayClassConditionStatusAccepted))
	})

	// A restart writes nothing, nor does what is applied again.
	version := in.class("used").ResourceVersion
	first.end()
	in.start()
	in.apply(gatewayOf("used"))
	in.until("the Gateway is taken in", func() bool { return in.gatewayAccepted() })
	time.Sleep(time.Second)
	if now := in.class("used").ResourceVersion; now != version {
		t.Error("the class was written once more")
	}

	// The Gateway moves to another class.
	in.apply(gatewayOf("former"))
	in.until("the finalizer moves with the Gateway", func() bool { return in.finalized("former") && !in.finalized("used") })

	if now := in.class("foreign"); now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("a foreign class was written: %v", now.Finalizers)
	}
	if now := in.class("foreign-used"); now.ResourceVersion != foreignUsed.ResourceVersion {
		t.Errorf("a foreign class was written: %v", now.Finalizers)
	}
}

// A class that is deleted while a Gateway uses it goes on to count, after a restart
// too, until the Gateway goes.
func TestDeletedClassServesItsGateways(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"))
	first := in.start()
	in.until("the class has the finalizer", func() bool { return in.finalized("gatehouse") })
	if err := in.client.Delete(in.Context(), in.class("gatehouse")); err != nil {
		t.Fatal(err)
	}
	first.end()

	in.start()
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
		spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 8080, protocol: HTTP}]}}`)
	in.until("a change of the Gateway is taken in", func() bool { return in.gatewayAccepted() })
	in.until("the class's condition is of its last generation", func() bool {
		c := in.class("gatehouse")
		accepted := meta.FindStatusCondition(c.Status.Conditions, string(gwv1.GatewayClassConditionStatusAccepted))
		return accepted != nil && accepted.Status == metav1.ConditionTrue && accepted.ObservedGeneration == c.Generation
	})
	web := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	if err := in.client.Delete(in.Context(), web); err != nil {
		t.Fatal(err)
	}
	in.until("the class is gone", func() bool { return in.class("gatehouse") == nil })
}

// gatewayAccepted reports whether the Gateway is, as it is now.
func (in *installed) gatewayAccepted() bool {
	in.Helper()
	web := &gwv1.Gateway{}
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, web); err != nil {
		in.Fatal(err)
	}
	c := meta.FindStatusCondition(web.Status.Conditions, string(gwv1.GatewayConditionAccepted))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == web.Generation
}
