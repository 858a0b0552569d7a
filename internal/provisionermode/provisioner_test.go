package provisionermode

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"
	gwfeatures "sigs.k8s.io/gateway-api/pkg/features"

	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// What config/provisioner.yaml installs.
const (
	namespace  = "gatehouse-provisioner"
	class      = "gatehouse-static"
	controller = "gatehouse.dev/provisioner"
)

// The conditions of a GatewayClass.
const (
	accepted  = gwv1.GatewayClassConditionStatusAccepted
	supported = gwv1.GatewayClassConditionStatusSupportedVersion
)

// patience bounds every wait of these tests; none waits that long.
const patience = 30 * time.Second

// TestProvisioner runs one test after the other on one API server.
func TestProvisioner(t *testing.T) {
	c := startCluster(t)
	for name, test := range map[string]func(*testing.T, *cluster){
		"GatewayClasses": testGatewayClasses, "Deployments": testDeployments, "ClassGone": testClassGone, "Refused": testRefused,
		"Versions": testVersions,
	} {
		t.Run(name, func(t *testing.T) {
			here := *c
			here.t = t
			t.Cleanup(here.clear)
			test(t, &here)
		})
	}
}

// clear leaves no Gateway and no Deployment of one to the next test.
func (c *cluster) clear() {
	c.t.Helper()
	var gateways gwv1.GatewayList
	if err := c.List(context.Background(), &gateways); err != nil {
		c.t.Fatal(err)
	}
	for i := range gateways.Items {
		if err := c.Delete(context.Background(), &gateways.Items[i]); err != nil {
			c.t.Fatal(err)
		}
	}
	err := c.DeleteAllOf(context.Background(), &appsv1.Deployment{}, client.InNamespace(namespace), client.HasLabels{classLabel})
	if err != nil {
		c.t.Fatal(err)
	}
}

// cluster is an API server with all of config/provisioner.yaml in it.
type cluster struct {
	client.Client
	t      *testing.T
	config *rest.Config
}

func startCluster(t *testing.T) *cluster { return startClusterOf(t, apiserver.Standard) }

func startClusterOf(t *testing.T, channel string) *cluster {
	t.Helper()
	s := apiserver.Start(t, apiserver.Options{Channel: channel})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Client: admin, t: t, config: s.Config}
	apiserver.Install(t, s.Config, "../../config/provisioner.yaml")
	return c
}

func (c *cluster) create(o client.Object) {
	c.t.Helper()
	if err := c.Create(context.Background(), o); err != nil {
		c.t.Fatal(err)
	}
}

// run runs a provisioner with nothing but the rights of its ServiceAccount, until
// the returned function is called.
func (c *cluster) run() (stop func()) {
	c.t.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":gatehouse-provisioner",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			ControllerName: controller, Class: class, Namespace: namespace, Image: "gatehouse:test",
			REST: config, Log: slog.New(slog.NewTextHandler(c.t.Output(), nil)),
		})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	}
	c.t.Cleanup(stop)
	return stop
}

func (c *cluster) gateway(name object.Name, class string) *gwv1.Gateway {
	c.t.Helper()
	err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name.Namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
	g := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	g.Spec.GatewayClassName = gwv1.ObjectName(class)
	g.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	c.create(g)
	return g
}

// deployments returns the Gateways that have one, sorted.
func (c *cluster) deployments() []string {
	c.t.Helper()
	var all appsv1.DeploymentList
	if err := c.List(context.Background(), &all, client.HasLabels{classLabel}); err != nil {
		c.t.Fatal(err)
	}
	out := []string{}
	for _, d := range all.Items {
		if d.Namespace != namespace || *d.Spec.Replicas != 1 || d.Spec.Template.Labels["app"] != d.Name {
			c.t.Errorf("%s/%s: %d replicas, pods of app %s", d.Namespace, d.Name, *d.Spec.Replicas, d.Spec.Template.Labels["app"])
		}
		args := d.Spec.Template.Spec.Containers[0].Args
		for _, want := range []string{
			"static-mode", "--gateway-ctlr-name=" + controller, "--gatewayclass=" + class,
			"--update-gatewayclass-status=false", "--leader-election-lock-name=" + d.Name, // no two have one name
		} {
			if !slices.Contains(args, want) {
				c.t.Errorf("%s/%s: no %s in %v", d.Namespace, d.Name, want, args)
			}
		}
		for _, arg := range args {
			if gateway, ok := strings.CutPrefix(arg, "--gateway="); ok {
				out = append(out, gateway)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not %s after %s", what, patience)
		}
	}
}

func (c *cluster) untilDeployed(gateways ...string) {
	c.t.Helper()
	slices.Sort(gateways)
	c.until(fmt.Sprintf("deployed for %.200v", gateways), func() bool { return slices.Equal(c.deployments(), gateways) })
}

func (c *cluster) condition(class string, kind gwv1.GatewayClassConditionType) *metav1.Condition {
	c.t.Helper()
	o := &gwv1.GatewayClass{}
	if err := c.Get(context.Background(), client.ObjectKey{Name: class}, o); err != nil {
		c.t.Fatal(err)
	}
	return meta.FindStatusCondition(o.Status.Conditions, string(kind))
}

// features are what the class says that it supports.
func (c *cluster) features() []gwv1.SupportedFeature {
	c.t.Helper()
	o := &gwv1.GatewayClass{}
	if err := c.Get(context.Background(), client.ObjectKey{Name: class}, o); err != nil {
		c.t.Fatal(err)
	}
	return o.Status.SupportedFeatures
}

// TestFeatures protects users from a class that claims what its processes don't do: they
// have no other address than their pod's, nothing is made that could be labelled, and the
// cluster serves no ClusterTrustBundles.
func TestFeatures(t *testing.T) {
	c := startClusterOf(t, apiserver.Experimental)
	c.run()
	c.until("accepted", func() bool {
		got := c.condition(class, accepted)
		return got != nil && got.Status == metav1.ConditionTrue
	})
	claimed := map[gwfeatures.FeatureName]bool{}
	for _, f := range c.features() {
		claimed[gwfeatures.FeatureName(f.Name)] = true
	}
	for name, want := range map[gwfeatures.FeatureName]bool{
		gwfeatures.SupportGateway: true, gwfeatures.SupportUDPRoute: true, gwfeatures.SupportGatewayAddressEmpty: true,
		gwfeatures.SupportGatewayStaticAddresses: false, gwfeatures.SupportGatewayInfrastructure: false,
		gwfeatures.SupportGatewayAddressRoutabilityCluster: false, gwfeatures.SupportClusterTrustBundle: false,
	} {
		if claimed[name] != want {
			t.Errorf("%s is claimed: %v", name, claimed[name])
		}
	}
}

func (c *cluster) class(name, controller string) *gwv1.GatewayClass {
	o := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.ControllerName = gwv1.GatewayController(controller)
	return o
}

func testGatewayClasses(t *testing.T, c *cluster) {
	c.create(c.class("second", controller))
	c.create(c.class("foreign", "example.com/x"))
	c.run()
	c.until("accepted", func() bool {
		return c.condition(class, accepted) != nil && c.condition(class, accepted).Status == metav1.ConditionTrue
	})
	if got := c.condition(class, accepted); got.Reason != "Accepted" || got.ObservedGeneration != 1 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(features.Status(features.Standard, features.Pod), c.features()); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	c.until("in conflict", func() bool { return c.condition("second", accepted).Reason == "GatewayClassConflict" })
	if got := c.condition("second", accepted); got.Status != metav1.ConditionFalse ||
		got.Message != "The resource is ignored due to a conflicting GatewayClass resource" {
		t.Errorf("%+v", got)
	}
	if got := c.condition("foreign", accepted); got.Status != metav1.ConditionUnknown { // the API server's default
		t.Errorf("a foreign class: %+v", got)
	}
}

func testDeployments(t *testing.T, c *cluster) {
	long := object.Name{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("g", 63) + "." + strings.Repeat("h", 189)}
	for _, g := range []object.Name{{Namespace: "a", Name: "b-c"}, {Namespace: "a-b", Name: "c"}, {Namespace: "b", Name: "same"}, {Namespace: "c", Name: "same"}, long} {
		c.gateway(g, class)
	}
	other := c.gateway(object.Name{Namespace: "a", Name: "other"}, "other")
	stop := c.run()
	all := []string{"a/b-c", "a-b/c", "b/same", "c/same", long.String()}
	c.untilDeployed(all...)

	// An update of a Gateway is not the provisioner's business.
	before := c.resourceVersions()
	g := &gwv1.Gateway{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "b", Name: "same"}, g); err != nil {
		t.Fatal(err)
	}
	g.Spec.Listeners[0].Port = 8080
	if err := c.Update(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	// One that enters the class is, and by it one sees that the update was passed.
	other.Spec.GatewayClassName = class
	if err := c.Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	c.untilDeployed(append(slices.Clone(all), "a/other")...)
	c.same(before)

	// A restart makes nothing anew, and finds what has gone meanwhile.
	stop()
	c.gateway(object.Name{Namespace: "d", Name: "new"}, class)
	if err := c.Delete(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	stop = c.run()
	c.untilDeployed("a/b-c", "a-b/c", "c/same", long.String(), "a/other", "d/new")
	delete(before, nameOf(object.Name{Namespace: "b", Name: "same"}, class))
	c.same(before)

	// One that leaves the class loses its Deployment, as does one that is deleted.
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Fatal(err)
	}
	other.Spec.GatewayClassName = "other"
	if err := c.Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(context.Background(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "same"}}); err != nil {
		t.Fatal(err)
	}
	c.untilDeployed("a/b-c", "a-b/c", long.String(), "d/new")

	// What a Gateway's status says is its process's to write.
	var gateways gwv1.GatewayList
	if err := c.List(context.Background(), &gateways); err != nil {
		t.Fatal(err)
	}
	for _, g := range gateways.Items {
		for _, f := range g.ManagedFields {
			if f.Subresource != "" {
				t.Errorf("Gateway %s/%s has a status by %s", g.Namespace, g.Name, f.Manager)
			}
		}
	}
	stop()
}

func (c *cluster) resourceVersions() map[string]string {
	c.t.Helper()
	var all appsv1.DeploymentList
	if err := c.List(context.Background(), &all, client.HasLabels{classLabel}); err != nil {
		c.t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range all.Items {
		out[d.Name] = string(d.UID) + " " + d.ResourceVersion
	}
	return out
}

// same reports Deployments that are not what they were.
func (c *cluster) same(before map[string]string) {
	c.t.Helper()
	now := c.resourceVersions()
	for name, version := range before {
		if now[name] != version {
			c.t.Errorf("Deployment %s was %s and is %s", name, version, now[name])
		}
	}
}

// Without its class, or with one of another controller, nothing is made; what runs
// stays while the class is gone, and goes when it is somebody else's.
func testClassGone(t *testing.T, c *cluster) {
	c.gateway(object.Name{Namespace: "a", Name: "one"}, class)
	c.run()
	c.untilDeployed("a/one")
	if err := c.Delete(context.Background(), c.class(class, "")); err != nil {
		t.Fatal(err)
	}
	// It has been seen when a Gateway, which comes later, has no Deployment.
	c.gateway(object.Name{Namespace: "a", Name: "two"}, class)
	if err := c.Delete(context.Background(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "two"}}); err != nil {
		t.Fatal(err)
	}
	c.untilDeployed("a/one")
	c.create(c.class(class, "example.com/x"))
	c.untilDeployed()
	if err := c.Delete(context.Background(), c.class(class, "")); err != nil {
		t.Fatal(err)
	}
	c.create(c.class(class, controller))
	c.untilDeployed("a/one")
}

// A namespace that takes no Deployment is no reason to end.
func testRefused(t *testing.T, c *cluster) {
	role := &rbacv1.Role{}
	key := client.ObjectKey{Namespace: namespace, Name: "gatehouse-provisioner"}
	if err := c.Get(context.Background(), key, role); err != nil {
		t.Fatal(err)
	}
	rules := role.Rules
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}}}
	if err := c.Update(context.Background(), role); err != nil {
		t.Fatal(err)
	}
	c.gateway(object.Name{Namespace: "a", Name: "one"}, class)
	c.run()
	c.until("accepted", func() bool {
		return c.condition(class, accepted) != nil && c.condition(class, accepted).Status == metav1.ConditionTrue
	})
	c.untilDeployed()
	role.Rules = rules
	if err := c.Update(context.Background(), role); err != nil {
		t.Fatal(err)
	}
	c.untilDeployed("a/one")
}

// The class says of which version the cluster's definitions are. While they are of one
// that may mean something else, nothing is made, what runs stays, and Gateways that are
// gone lose their Deployments all the same.
func testVersions(t *testing.T, c *cluster) {
	gateway := func(name string) object.Name { return object.Name{Namespace: "a", Name: name} }
	remove := func(name string) {
		t.Helper()
		if err := c.Delete(context.Background(), &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(version string, wantAccepted, wantSupported metav1.ConditionStatus, reason gwv1.GatewayClassConditionReason) {
		t.Helper()
		apiserver.SetBundleVersion(t, c.config, version)
		c.until("told of version "+version, func() bool {
			a, s := c.condition(class, accepted), c.condition(class, supported)
			return a != nil && s != nil && a.Status == wantAccepted && s.Status == wantSupported && s.Reason == string(reason)
		})
	}
	defer apiserver.SetBundleVersion(t, c.config, consts.BundleVersion)
	c.gateway(gateway("one"), class)
	c.gateway(gateway("two"), class)
	leaves := c.gateway(gateway("leaves"), class)
	c.run()
	check(consts.BundleVersion, metav1.ConditionTrue, metav1.ConditionTrue, gwv1.GatewayClassReasonSupportedVersion)
	check("v1.2.3", metav1.ConditionTrue, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupportedVersion)
	c.untilDeployed("a/leaves", "a/one", "a/two")
	check("v2.0.0", metav1.ConditionFalse, metav1.ConditionFalse, gwv1.GatewayClassReasonUnsupportedVersion)
	if got := c.condition(class, accepted); got.Reason != string(gwv1.GatewayClassReasonUnsupportedVersion) {
		t.Errorf("%+v", got)
	}
	leaves.Spec.GatewayClassName = "other"
	if err := c.Update(context.Background(), leaves); err != nil {
		t.Fatal(err)
	}
	c.gateway(gateway("three"), class)
	remove("one")
	c.untilDeployed("a/leaves", "a/two")
	check("v1.7.9", metav1.ConditionTrue, metav1.ConditionTrue, gwv1.GatewayClassReasonSupportedVersion)
	c.untilDeployed("a/three", "a/two")
}
