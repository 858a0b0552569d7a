package cluster

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

// What static-mode writes and what it leaves alone, as an API server sees it. There
// is no Envoy: a proxy that doesn't come keeps no status from being written.
func TestStaticCluster(t *testing.T) {
	s, server := newStaticCluster(t)
	s.create(&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: gwv1.GatewayClassSpec{ControllerName: staticController}})
	s.create(&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: gwv1.GatewayClassSpec{ControllerName: "example.com/x"}})
	s.gateway("a")
	s.gateway("b")
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "route"}}
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "a"}, {Name: "b"}}
	s.create(route)

	t.Run("one of several", func(t *testing.T) {
		s.t = t
		// With no more rights than the processes of the provisioner have: none over
		// the status of classes.
		process := rest.CopyConfig(server.Config)
		process.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + staticNamespace + ":gatehouse-static",
			Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		}
		logged := s.run(process, Static{Gateway: object.Name{Namespace: "ns", Name: "b"}})
		s.untilCondition("the Gateway's status", "b", gwv1.GatewayConditionAccepted, "Accepted")
		s.until("the route has one parent", func() bool {
			s.get("ns", "route", route)
			return len(route.Status.Parents) == 1 && route.Status.Parents[0].ParentRef.Name == "b"
		})
		if got := s.condition("a", gwv1.GatewayConditionAccepted); got != "Pending" {
			t.Errorf("the other Gateway is %s", got)
		}
		for _, class := range []string{staticClass, "second"} {
			if got := s.classCondition(class, gwv1.GatewayClassConditionStatusAccepted); got != "Unknown Pending" {
				t.Errorf("class %s is %s", class, got)
			}
		}
		if log := logged(); strings.Contains(log, "forbidden") {
			t.Errorf("a right is missing:\n%s", log)
		}
	})

	t.Run("the oldest", func(t *testing.T) {
		s.t = t
		s.run(server.Config, Static{ClassStatus: true})
		s.untilCondition("the status of the oldest", "a", gwv1.GatewayConditionAccepted, "Accepted")
		s.untilCondition("the status of the other", "b", gwv1.GatewayConditionAccepted, "GatewayConflict")
		s.until("the other class is told", func() bool {
			return s.classCondition("second", gwv1.GatewayClassConditionStatusAccepted) == "False GatewayClassConflict"
		})
		if got := s.classCondition("foreign", gwv1.GatewayClassConditionStatusAccepted); got != "Unknown Pending" {
			t.Errorf("a foreign class is %s", got)
		}
		class := &gwv1.GatewayClass{}
		s.get("", staticClass, class)
		if diff := cmp.Diff(features.Status(features.Standard, features.Pod), class.Status.SupportedFeatures); diff != "" {
			t.Errorf("features (-want +got):\n%s", diff)
		}
		for _, c := range []struct{ version, accepted, supported string }{
			{consts.BundleVersion, "True Accepted", "True SupportedVersion"},
			{"v1.2.3", "True Accepted", "False UnsupportedVersion"},
			{"v2.0.0", "False UnsupportedVersion", "False UnsupportedVersion"},
		} {
			apiserver.SetBundleVersion(t, server.Config, c.version)
			s.until("the class knows of version "+c.version, func() bool {
				return s.classCondition(staticClass, gwv1.GatewayClassConditionStatusAccepted) == c.accepted &&
					s.classCondition(staticClass, gwv1.GatewayClassConditionStatusSupportedVersion) == c.supported
			})
		}
		apiserver.SetBundleVersion(t, server.Config, consts.BundleVersion)
		if err := s.Delete(t.Context(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		s.untilCondition("the other takes over", "b", gwv1.GatewayConditionAccepted, "Accepted")
	})
}

// What config/provisioner.yaml installs.
const (
	staticNamespace  = "gatehouse-provisioner"
	staticClass      = "gatehouse-static"
	staticController = "gatehouse.dev/provisioner"
)

// staticCluster is an API server and a process of static-mode at a time.
type staticCluster struct {
	client.Client
	t *testing.T
}

func newStaticCluster(t *testing.T) (*staticCluster, *apiserver.Server) {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	apiserver.Install(t, server.Config, "../../config/provisioner.yaml")
	s := &staticCluster{t: t}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kind.All.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.Client, err = client.New(server.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	return s, server
}

// run runs static-mode without an Envoy until the test ends. What it returns is what was logged.
func (s *staticCluster) run(as *rest.Config, o Static) (logged func() string) {
	s.t.Helper()
	o.Address, o.StateDir = netip.MustParseAddr("192.0.2.1"), s.t.TempDir()
	o.Envoy = proxy.Binary{Path: "/nonexistent/envoy"}
	log := &output.Buffer{}
	s.start(s.prepare(as, o, log))
	return log.String
}

// prepare makes a process of static-mode.
func (s *staticCluster) prepare(as *rest.Config, o Static, log io.Writer) *Cluster {
	s.t.Helper()
	c := configuration.Default()
	c.ControllerName = staticController
	c.Infrastructure.Type = configuration.InfrastructureNone
	c.Ports.Health, c.Ports.Metrics = 0, 0
	o.Class = staticClass
	cluster, err := New(s.t.Context(), Options{
		Config: c, REST: rest.CopyConfig(as), Logs: configuration.NewLogs(c.Log, log), Static: &o,
		Self: Replica{Namespace: staticNamespace, Name: "pod", IP: o.Address.String()},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return cluster
}

// start runs it until the test ends.
func (s *staticCluster) start(cluster *Cluster) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cluster.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *staticCluster) create(o client.Object) {
	s.t.Helper()
	if err := s.Create(context.Background(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *staticCluster) get(namespace, name string, o client.Object) {
	s.t.Helper()
	if err := s.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *staticCluster) gateway(name string) {
	s.t.Helper()
	g := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	g.Spec.GatewayClassName = staticClass
	g.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	s.create(g)
}

// condition returns the reason of a Gateway's condition.
func (s *staticCluster) condition(gateway string, kind gwv1.GatewayConditionType) string {
	s.t.Helper()
	g := &gwv1.Gateway{}
	s.get("ns", gateway, g)
	if c := meta.FindStatusCondition(g.Status.Conditions, string(kind)); c != nil {
		return c.Reason
	}
	return ""
}

func (s *staticCluster) untilCondition(what, gateway string, kind gwv1.GatewayConditionType, reason string) {
	s.t.Helper()
	s.until(what, func() bool { return s.condition(gateway, kind) == reason })
}

// classCondition returns the status and the reason of a condition of a class.
func (s *staticCluster) classCondition(name string, kind gwv1.GatewayClassConditionType) string {
	s.t.Helper()
	class := &gwv1.GatewayClass{}
	s.get("", name, class)
	if c := meta.FindStatusCondition(class.Status.Conditions, string(kind)); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

func (s *staticCluster) until(what string, ok func() bool) {
	s.t.Helper()
	const most = 30 * time.Second
	for deadline := time.Now().Add(most); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not after %s", what, most)
		}
	}
}
