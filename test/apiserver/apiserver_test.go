package apiserver_test

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

func TestMain(m *testing.M) {
	crlog.SetLogger(logr.Discard())
	os.Exit(apiserver.Shared(m).Run())
}

// What is stored outlives the server's death, and the kinds of the channel are
// served before and after.
func TestRestart(t *testing.T) {
	slow.Skip(t)
	s := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	c := connect(t, s)
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

// A test has nothing of what the tests before it have made, changed and removed, on
// the same server; and has another server where that can't be.
func TestShared(t *testing.T) {
	slow.Skip(t)
	options := apiserver.Options{Channel: apiserver.Standard}
	var servers []string
	run := func(name string, test func(*testing.T, *apiserver.Server, client.Client)) {
		t.Run(name, func(t *testing.T) {
			s := apiserver.Start(t, options)
			servers = append(servers, s.Config.Host)
			test(t, s, connect(t, s))
		})
	}
	view := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}
	standard := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	ours := func() []client.Object {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		service.Spec.Type, service.Spec.ClusterIP = corev1.ServiceTypeLoadBalancer, "10.0.0.7"
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		class := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "ours", Finalizers: []string{"example.com/stays"}}}
		class.Spec.ControllerName = "example.com/controller"
		return []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, service, class,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ours"}},
		}
	}
	for range 2 {
		run("objects", func(t *testing.T, _ *apiserver.Server, c client.Client) {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(standard), standard); err != nil || standard.Labels["ours"] != "" {
				t.Fatalf("namespace default has the labels %v, %v", standard.Labels, err)
			}
			standard.Labels = map[string]string{"ours": "yes"}
			if err := c.Update(t.Context(), standard); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), view.DeepCopy()); err != nil {
				t.Error(err)
			}
			for _, o := range ours() {
				if err := c.Create(t.Context(), o); err != nil {
					t.Errorf("%T: %v", o, err)
				}
			}
			class := ours()[2]
			if err := c.Delete(t.Context(), class); err != nil { // it has a finalizer, and stays
				t.Error(err)
			}
		})
	}
	run("a definition", func(t *testing.T, s *apiserver.Server, c client.Client) {
		for _, o := range ours() {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				t.Errorf("%T: %v", o, err)
			}
		}
		apiserver.SetBundleVersion(t, s.Config, "v0")
	})
	run("its death", func(_ *testing.T, s *apiserver.Server, _ client.Client) {
		s.Kill()
		s.Resume()
	})
	run("nothing", func(*testing.T, *apiserver.Server, client.Client) {})
	if len(servers) != 5 {
		t.Fatalf("of five servers there were %d", len(servers))
	}
	if servers[0] != servers[1] || servers[1] != servers[2] {
		t.Errorf("what objects can be made undone on is not used again: %v", servers)
	}
	if servers[2] == servers[3] || servers[3] == servers[4] {
		t.Errorf("what was killed, or has other definitions, is used again: %v", servers)
	}
}

func connect(t *testing.T, s *apiserver.Server) client.Client {
	t.Helper()
	scheme := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{clientgoscheme.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
