package apply

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

func testDrift(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment, service, account, authorities := &appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })

	at.patch(deployment, `{"spec": {"replicas": 5, "paused": true}, "metadata": {"annotations": {"somebody.example/note": "x"}}}`)
	at.await("1 replica", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 1 })
	if deployment.Annotations["somebody.example/note"] != "x" || !deployment.Spec.Paused {
		t.Errorf("what is somebody else's is gone: %v, paused %t", deployment.Annotations, deployment.Spec.Paused)
	}

	at.get(g, authorities)
	at.patch(authorities, `{"data": {"ca.crt": "false"}}`)
	at.await("the authorities", func() bool {
		return at.get(g, authorities) && authorities.Data["ca.crt"] == string(testOptions.Authorities)
	})

	at.get(g, service)
	before := service.UID
	at.must(at.Client.Delete(t.Context(), service))
	at.await("another Service", func() bool { return at.get(g, service) && service.UID != before })

	for _, patch := range []string{
		`{"spec": {"ports": [{"port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"ports": [{"name": "tcp-80", "port": 80, "targetPort": 10080, "protocol": "TCP"}, {"name": "a", "port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"ports": [{"name": "tcp-80", "port": 80, "targetPort": 10080, "protocol": "TCP"}, {"name": "tcp-443", "port": 443, "targetPort": 10443, "protocol": "TCP"}, {"name": "udp-443", "port": 443, "targetPort": 10443, "protocol": "UDP"}, {"name": "a", "port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"selector": {"app": "evil"}}}`,
	} {
		at.patch(service, patch)
		at.await("the Service's ports and selector", func() bool {
			return at.get(g, service) && len(service.Spec.Ports) == 3 && service.Spec.Ports[0].Port == 80 && len(service.Spec.Selector) == 2
		})
	}
	a.Set(at.gateway(func(g *infra.Gateway) { g.Ports = g.Ports[:1] }))
	at.await("1 port", func() bool { return at.get(g, service) && len(service.Spec.Ports) == 1 })

	at.get(g, account)
	at.patch(account, `{"metadata": {"labels": null}}`)
	at.await("the ServiceAccount's labels", func() bool { return at.get(g, account) && account.Labels[infra.ManagedByLabel] == infra.ManagedBy })
}

func testForeign(t *testing.T, at *applierTest) {
	g := at.gateway()
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "web-gatehouse"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	at.must(at.Create(t.Context(), foreign))
	a := at.start()
	a.Set(g)
	at.await("a problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem != "" })
	if want := "Service foreign-objects-stay/web-gatehouse: there is one already that is not this Gateway's; rename it or the Gateway"; a.state(g.Name).Problem != want {
		t.Errorf("the problem is %q, want %q", a.state(g.Name).Problem, want)
	}
	got := &corev1.Service{}
	if at.get(g, got); got.ResourceVersion != foreign.ResourceVersion {
		t.Error("the foreign Service has changed")
	}
	if !at.get(g, &appsv1.Deployment{}) {
		t.Error("the Service keeps the Deployment back")
	}
	a.Delete(g.Name)
	at.await("the fleet's end", func() bool { return !at.get(g, &appsv1.Deployment{}) })
	if !at.get(g, got) {
		t.Error("the foreign Service is gone")
	}
	a.Set(g)
	at.must(at.Client.Delete(t.Context(), got))
	at.await("our Service", func() bool { return at.get(g, got) && got.Labels[infra.ManagedByLabel] == infra.ManagedBy })
	at.await("no problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem == "" })
}

func testForbidden(t *testing.T, at *applierTest) {
	at.user = "weak"
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem != "" })
	if p := a.state(g.Name).Problem; !strings.HasPrefix(p, "Service says-why-it-cant/web-gatehouse: ") || !strings.Contains(p, `cannot patch resource "services"`) {
		t.Errorf("the problem is %q", p)
	}
	if !at.get(g, &appsv1.Deployment{}) {
		t.Error("the Service keeps the Deployment back")
	}
}

func testBadPatch(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.take()
	bad := v1alpha1.Patch{Target: v1alpha1.PatchTarget{Kind: "Service"}}
	bad.Value.Raw = []byte(`{"spec": {"tpye": "ClusterIP"}}`)
	a.Set(at.gateway(with(v1alpha1.Settings{Patches: []v1alpha1.Patch{bad}})))
	at.await("a problem", func() bool {
		s := a.state(g.Name)
		return s != nil && strings.Contains(s.Problem, `unknown field "tpye"`)
	})
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("the fleet was to stay as it is, yet: %v", w)
	}
}

// An admission controller that changes what is applied must not make it be applied
// for ever.
func testAdmission(t *testing.T, at *applierTest) {
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
				},
			}}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{spec: Object.spec{externalTrafficPolicy: "Cluster"}}`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName:     "cluster",
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: at.namespace}}},
		},
	}
	at.must(at.Create(t.Context(), policy))
	at.must(at.Create(t.Context(), binding))
	probe := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "probe"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal},
	}
	at.await("the policy", func() bool {
		got := probe.DeepCopy()
		at.must(at.Create(t.Context(), got, client.DryRunAll))
		return got.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster
	})
	g, service := at.gateway(), &corev1.Service{}
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	if at.get(g, service); service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyCluster {
		t.Errorf("the policy is %s", service.Spec.ExternalTrafficPolicy)
	}
	a.take()
	a.Set(at.gateway())
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	at.must(at.Status().Update(t.Context(), service))
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("nothing has changed, yet: %v", w)
	}
}
