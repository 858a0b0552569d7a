package teardown

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// Classes are released when the controllers have gone, not before, and those of other
// controllers never, nor those that another installation serves. It may be run again, with
// nothing left to do.
func TestTeardown(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	const namespace = "gatehouse-system"
	const foreign = "example.com/theirs"
	for name, class := range map[string]struct {
		controller string
		finalizers []string
	}{
		"used":   {"gatehouse.dev/controller", []string{foreign, finalizer}},
		"unused": {"gatehouse.dev/controller", nil},
		"other":  {"example.com/controller", []string{finalizer}},
	} {
		o := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: class.finalizers}}
		o.Spec.ControllerName = gwv1.GatewayController(class.controller)
		create(o)
	}
	finalizers := func(class string) []string {
		t.Helper()
		o := &gwv1.GatewayClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: class}, o); err != nil {
			t.Fatal(err)
		}
		return o.Finalizers
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	labels := map[string]string{"app": "gatehouse"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "controller", Image: "gatehouse"}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gatehouse"}}
	deployment.Spec.Replicas = new(int32(2))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
	create(deployment)
	controller := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gatehouse-1", Labels: labels}, Spec: spec}
	create(controller)
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "beside", Labels: map[string]string{"app": "other"}}, Spec: spec})

	var told []string
	o := Options{
		REST: limited(t, c, server.Config), ControllerName: "gatehouse.dev/controller", Namespace: namespace, Deployments: []string{"gatehouse"},
		Claim: client.ObjectKey{Namespace: "default", Name: "claim"}, Holder: "the-controllers",
		Tell: func(s string) { told = append(told, s) },
	}
	claim := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"}}
	create(claim)
	sign := func(holder string, renewed time.Time) {
		t.Helper()
		claim.Spec.HolderIdentity, claim.Spec.LeaseDurationSeconds = &holder, new(int32(300))
		claim.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
		if err := c.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	sign("others", time.Now())
	// No Deployment controller runs here, so the pod stays until the test deletes it.
	waits := func(what string) {
		t.Helper()
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := Run(short, o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("it doesn't wait for %q: %v", what, err)
		}
	}
	waits("pods are left: gatehouse-1;")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil || *deployment.Spec.Replicas != 0 {
		t.Errorf("%d replicas, %v", *deployment.Spec.Replicas, err)
	}
	if got := finalizers("used"); !slices.Contains(got, finalizer) {
		t.Errorf("released although a controller runs: %v", got)
	}

	if err := c.Delete(t.Context(), controller, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	waits("its status still counts replicas, or is of an older generation") // pods may still come
	if got := finalizers("used"); !slices.Contains(got, finalizer) {
		t.Errorf("released although controllers may come: %v", got)
	}
	deployment.Status.ObservedGeneration = deployment.Generation
	if err := c.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	// An installation that stands back takes nothing from the one that works.
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := finalizers("used"); !slices.Contains(got, finalizer) {
		t.Errorf("released although another installation serves it: %v", got)
	}
	if n := len(told); n != 2 || !strings.Contains(told[1], "the installation whose Lease is others has the controllerName") {
		t.Errorf("told %q", told)
	}

	told = nil
	sign("others", time.Now().Add(-301*time.Second)) // nobody takes it over from these controllers
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := finalizers("used"); !slices.Equal(got, []string{foreign}) {
		t.Errorf("the class in use has the finalizers %v", got)
	}
	if got := finalizers("other"); !slices.Equal(got, []string{finalizer}) {
		t.Errorf("the class of another controller has the finalizers %v", got)
	}
	if n := len(told); n != 3 || !strings.HasPrefix(told[2], "GatewayClass used: released") {
		t.Errorf("told %q", told)
	}

	if err := c.Get(t.Context(), o.Claim, claim); err != nil {
		t.Errorf("the claim of others: %v", err)
	}
	sign(o.Holder, time.Now())
	if err := c.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), o); err != nil {
		t.Error("once more: ", err)
	}
	if err := c.Get(t.Context(), o.Claim, claim); !apierrors.IsNotFound(err) {
		t.Errorf("the claim of the controllers that have ended: %v", err)
	}
}

// limited is the configuration of a user who may do what the chart lets its Job do.
func limited(t *testing.T, c client.Client, admin *rest.Config) *rest.Config {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "teardown"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{gwv1.GroupName}, Resources: []string{"gatewayclasses"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"gatehouse"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, ResourceNames: []string{"gatehouse"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"claim"}, Verbs: []string{"get", "delete"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "teardown"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "teardown"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "teardown"},
	}
	for _, o := range []client.Object{role, binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	apiserver.AwaitRights(t, admin)
	config := rest.CopyConfig(admin)
	config.Impersonate.UserName = "teardown"
	return config
}
