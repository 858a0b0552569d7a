package apiserver_test

import (
	"context"
	"testing"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// What is stored outlives the server's death, and the kinds of the channel are
// served before and after.
func TestRestart(t *testing.T) {
	s := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	scheme := kruntime.NewScheme()
	if err := gwv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	class := &gwv1.GatewayClass{}
	class.Name, class.Spec.ControllerName = "example", "example.com/controller"
	if err := c.Create(context.Background(), class); err != nil {
		t.Fatal(err)
	}
	if err := c.List(context.Background(), &gwv1.HTTPRouteList{}); err != nil {
		t.Error(err)
	}
	s.Kill()
	if err := c.Get(context.Background(), client.ObjectKey{Name: "example"}, class); err == nil {
		t.Fatal("a killed server answers")
	}
	s.Resume()
	if err := c.Get(context.Background(), client.ObjectKey{Name: "example"}, class); err != nil {
		t.Fatal(err)
	}
}
