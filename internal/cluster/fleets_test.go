package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// TestFormerFleet protects whose proxies may go on when a Gateway gets another class:
// those of fleets that it had, by what the API server says, and no other's.
func TestFormerFleet(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	direct, err := client.NewWithWatch(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{direct: direct, config: configuration.Default()}
	if err := direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
		t.Fatal(err)
	}
	account := func(name, gateway, class, controller string) {
		t.Helper()
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name,
			Annotations: map[string]string{"gatehouse.dev/class": class, "gatehouse.dev/controller": controller},
		}}
		if gateway != "" {
			sa.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway", Name: gateway, UID: types.UID("u"), Controller: new(true),
			}}
		}
		if err := direct.Create(t.Context(), sa); err != nil {
			t.Fatal(err)
		}
	}
	own := c.config.ControllerName
	account("web-former", "web", "former", own)
	account("web-foreign", "web", "foreign", "example.com/controller")
	account("web-nobodys", "", "nobodys", own)
	account("api-former", "api", "former", own)
	account("web-renamed", "web", "former", own)
	for name, want := range map[string]bool{
		"web-former": true, "web-foreign": false, "web-nobodys": false, "api-former": false, "web-renamed": false, "web-gone": false, "default": false,
	} {
		got, err := (&provisioned{cluster: c}).isFormer(t.Context(), object.Name{Namespace: "team", Name: "web"}, object.Name{Namespace: "team", Name: name})
		if err != nil || got != want {
			t.Errorf("%s: %t, %v; want %t", name, got, err, want)
		}
	}
}
