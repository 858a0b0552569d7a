package apply

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// A fleet moves from its Gateway's namespace to one for all fleets as it moves to another class: the former one serves
// until the new one is ready, and the Gateway's status says so. There it is apart from those of Gateways of the same
// name, needs no right outside of that namespace, and goes when its Gateway is seen to be gone.
func testPlaces(t *testing.T, at *applierTest) {
	const common = "fleets-of-all"
	at.must(at.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: common}}))
	live, tell := at.live()
	g := at.gateway(func(g *infra.Gateway) { g.UID, g.Limits = live.UID, true })
	before := *at
	a := before.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment in the Gateway's namespace", func() bool { return before.get(g, deployment) })
	at.setReady(deployment)
	at.await("a Service", func() bool { return before.get(g, &corev1.Service{}) })
	before.balance(g, "192.0.2.1")
	tell("192.0.2.1")
	pod := before.pod(g, "web-gatehouse-1")
	a.stop()

	at.places = infra.Places{Namespace: common, Former: []string{infra.OfGateways}}
	a = at.start()
	a.Set(g)
	at.await("a Deployment in the common namespace", func() bool { return at.get(g, deployment) })
	if len(deployment.OwnerReferences) > 0 || infra.GatewayUID(deployment) != live.UID || deployment.Spec.Template.Spec.ServiceAccountName != deployment.Name {
		t.Errorf("the Deployment %s has the owners %v, is of the Gateway with UID %s, and runs as %s",
			deployment.Name, deployment.OwnerReferences, infra.GatewayUID(deployment), deployment.Spec.Template.Spec.ServiceAccountName)
	}
	serving := func(want object.Name) {
		t.Helper()
		at.await("serving "+want.String(), func() bool { s := a.state(g.Name); return s != nil && s.Serving == want })
	}
	serving(before.places.Name(g.Name, g.Class))
	at.setReady(deployment)
	at.await("a Service", func() bool { return at.get(g, &corev1.Service{}) })
	at.balance(g, "192.0.2.2")
	serving(at.places.Name(g.Name, g.Class))
	if !before.get(g, &appsv1.Deployment{}) {
		t.Error("the former Deployment goes before the Gateway's status tells of the new address")
	}
	tell("192.0.2.2")
	at.await("that the former Deployment goes", func() bool { return !before.get(g, &appsv1.Deployment{}) })
	if !before.get(g, &corev1.Service{}) || !before.get(g, &corev1.ServiceAccount{}) {
		t.Error("the former Service goes while a pod of it serves")
	}
	at.must(at.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	at.await("that all else goes", func() bool {
		left := &corev1.ServiceAccountList{} // that of what counts too
		at.must(at.List(t.Context(), left, client.InNamespace(at.namespace)))
		return !before.get(g, &corev1.Service{}) && !before.get(g, &corev1.ConfigMap{}) && len(left.Items) == 0
	})
	a.stop()

	// Once it has moved, rights in the one namespace are enough. It reads Gateways, to know whether one is gone.
	at.user = "settled"
	permitIn(t, at, at.user, common)
	at.places.Former = []string{}
	a = at.start()
	a.Set(g)
	twin := *g
	twin.Name = object.Name{Namespace: "elsewhere", Name: g.Name.Name}
	a.Set(&twin)
	other := &appsv1.Deployment{}
	at.await("that of a Gateway of that name in another namespace", func() bool { return at.get(&twin, other) && at.get(g, deployment) })
	if other.Name == deployment.Name || other.Labels[infra.NamespaceLabel] != "elsewhere" || len(other.Name) > 53 {
		t.Errorf("the Deployments of two tenants are %s and %s, with the labels %v", deployment.Name, other.Name, other.Labels)
	}
	a.Complete()
	at.must(at.Client.Delete(t.Context(), live))
	a.Delete(g.Name)
	at.await("that nothing of the Gateway is left", func() bool {
		left := 0
		for _, k := range kinds {
			list := k.list()
			at.must(at.List(t.Context(), list, client.InNamespace(common), client.MatchingLabels{infra.NamespaceLabel: at.namespace}))
			left += meta.LenList(list)
		}
		return left == 0
	})
	if !at.get(&twin, other) {
		t.Error("the fleet of another tenant's Gateway goes with it")
	}
	for _, write := range a.take() {
		if !strings.Contains(write, "/namespaces/"+common+"/") {
			t.Errorf("it has written outside of the common namespace: %s", write)
		}
	}
}

// permitIn grants a user what a controller may do to fleets in one namespace, and to read Gateways in all.
func permitIn(t *testing.T, at *applierTest, user, namespace string) {
	t.Helper()
	all := &rbacv1.ClusterRole{}
	at.must(at.Get(t.Context(), client.ObjectKey{Name: "applier"}, all))
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	gateways := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{gwv1.GroupName}, Resources: []string{"gateways", "gatewayclasses"}, Verbs: []string{"get"}},
	}}
	for _, o := range []client.Object{
		gateways,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: all.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		},
	} {
		at.must(at.Create(t.Context(), o))
	}
	apiserver.AwaitRights(t, at.rest)
}
