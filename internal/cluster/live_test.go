package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// What a person is told of a cluster: the statuses that are there, of the objects
// that are ours, and what those become.
func TestSnapshot(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kind.All.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	class := func(name, controller string) *gwv1.GatewayClass {
		return &gwv1.GatewayClass{ObjectMeta: at("", name), Spec: gwv1.GatewayClassSpec{ControllerName: gwv1.GatewayController(controller)}}
	}
	gateway := func(ns, name, class string) *gwv1.Gateway {
		return &gwv1.Gateway{ObjectMeta: at(ns, name), Spec: gwv1.GatewaySpec{
			GatewayClassName: gwv1.ObjectName(class), Listeners: []gwv1.Listener{{
				Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType,
				TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: "certificate"}}},
			}},
		}}
	}
	route := func(ns, name, gateway string) *gwv1.HTTPRoute {
		return &gwv1.HTTPRoute{ObjectMeta: at(ns, name), Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}},
		}}
	}
	ours, answered := gateway("shop", "ours", "ours"), route("shop", "answered", "ours")
	create(
		&corev1.Namespace{ObjectMeta: at("", "shop")}, &corev1.Namespace{ObjectMeta: at("", "other")},
		class("ours", pipeline.ControllerName), class("foreign", "example.com/controller"),
		ours, gateway("other", "ours-too", "ours"), gateway("shop", "foreign", "foreign"),
		answered, route("shop", "waiting", "ours"), route("shop", "foreign", "foreign"),
		&corev1.Secret{ObjectMeta: at("shop", "certificate"), Data: map[string][]byte{"tls.crt": []byte("nonsense")}},
	)
	say := func(kind, status, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
			ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
		}
	}
	ip := gwv1.IPAddressType
	ours.Status = gwv1.GatewayStatus{
		Addresses:  []gwv1.GatewayStatusAddress{{Type: &ip, Value: "192.0.2.7"}},
		Conditions: []metav1.Condition{say("Accepted", "True", "Accepted", ""), say("Programmed", "True", "Programmed", "")},
		Listeners: []gwv1.ListenerStatus{{
			Name: "https", AttachedRoutes: 2, SupportedKinds: []gwv1.RouteGroupKind{},
			Conditions: []metav1.Condition{say("Programmed", "True", "Programmed", "")},
		}},
	}
	parent := func(controller, status, reason, message string) gwv1.RouteParentStatus {
		return gwv1.RouteParentStatus{
			ParentRef: gwv1.ParentReference{Name: "ours"}, ControllerName: gwv1.GatewayController(controller),
			Conditions: []metav1.Condition{say("Accepted", status, reason, message)},
		}
	}
	answered.Status.Parents = []gwv1.RouteParentStatus{
		parent("example.com/controller", "False", "NotOurs", "said by others"),
		parent(pipeline.ControllerName, "True", "Accepted", ""),
	}
	for _, o := range []client.Object{ours, answered} {
		if err := c.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}

	take := func(config *rest.Config, namespace string) (*Snapshot, *kube.Reader) {
		t.Helper()
		r, err := kube.Open(config, namespace)
		if err != nil {
			t.Fatal(err)
		}
		s, err := TakeSnapshot(t.Context(), r, pipeline.ControllerName, "gatehouse-system")
		if err != nil {
			t.Fatal(err)
		}
		return s, r
	}
	lines := func(v view.View) (out []string) {
		for _, it := range v.Items {
			line := it.Key() + " " + it.Summary.State
			for _, l := range it.Summary.Listeners {
				line += " " + strings.Join(append([]string{l.Name, strconv.Itoa(l.Port), strconv.Itoa(int(l.Routes)), l.State}, l.Addrs...), ":")
			}
			out = append(out, line)
		}
		return out
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}

	s, r := take(server.Config, "shop")
	shop := []string{
		"Gateway shop/ours Programmed https:443:2:Programmed:192.0.2.7",
		"HTTPRoute shop/answered Accepted",
		"HTTPRoute shop/waiting Pending",
	}
	check("a namespace", lines(s.Live("shop")), append([]string{"GatewayClass ours Pending"}, shop...)...)
	check("all namespaces", lines(s.Live("")),
		"GatewayClass ours Pending", "Gateway other/ours-too Pending https:443:0:Pending", shop[0], shop[1], shop[2])

	// The contents that are referred to are read, and judged.
	if err := s.Complete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := view.PrintFocus(&text, s.Pipeline, view.StageStatus, view.Focus{Namespace: "shop"}); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "tls.key is missing") || strings.Contains(got, "ours-too") {
		t.Errorf("the certificate was not judged, or another namespace is shown:\n%s", got)
	}

	// Who should serve the objects is told, if nobody does, or not all who should.
	claim := configuration.ClaimName(pipeline.ControllerName)
	renewed, holder := metav1.NowMicro(), "first/gatehouse-leader"
	lease := &coordinationv1.Lease{ObjectMeta: at("default", claim), Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
	create(lease)
	for _, ns := range []string{"first", "second", "third"} {
		controllerName := map[string]string{"third": "example.com/third"}[ns]
		meta := at(ns, "gatehouse")
		meta.Labels = map[string]string{"app.kubernetes.io/name": "gatehouse", "app.kubernetes.io/component": "controller"}
		pod := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "controller", Image: "gatehouse"}}},
		}
		create(
			&corev1.Namespace{ObjectMeta: at("", ns)},
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: meta.Labels}, Template: pod}},
			&corev1.ConfigMap{ObjectMeta: at(ns, "gatehouse"), Data: map[string]string{
				"config.yaml": "controllerName: " + cmp.Or(controllerName, pipeline.ControllerName) + "\nleaderElection: {name: gatehouse-leader}\nother: true",
			}},
		)
	}
	told := func() (out []string) {
		s, _ := take(server.Config, "shop")
		for _, p := range s.Live("shop").Problems {
			out = append(out, p.Error())
		}
		return out
	}
	const back = "Deployment second/gatehouse: it stands back and writes nothing, since another installation, whose Lease is first/gatehouse-leader, has controllerName " + pipeline.ControllerName +
		"; give one of the two another controllerName and GatewayClass, or uninstall it"
	check("with two installations", told(), back)
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	if err := c.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	check("with none that runs", told(), "Lease default/"+claim+": no controller of controllerName "+pipeline.ControllerName+
		" has renewed it since 2026-01-02T03:04:05Z: what statuses say may be out of date; see that the installation of Lease first/gatehouse-leader runs", back)
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	check("where nothing is known", told())

	// A generation that the status doesn't know is told.
	answered.Spec.Hostnames = []gwv1.Hostname{"example.com"}
	if err := c.Update(t.Context(), answered); err != nil {
		t.Fatal(err)
	}
	s, _ = take(server.Config, "shop")
	i := slices.IndexFunc(s.Live("").Items, func(it view.Item) bool { return it.Metadata.Name == "answered" })
	if sum := s.Live("").Items[i].Summary; sum.OK || !strings.Contains(sum.Message, "generation 2") {
		t.Errorf("a status of an older generation is shown as %+v", sum)
	}

	// Who may read one namespace, and no Secrets, sees that and is told so.
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "weak"}}
	create(
		&rbacv1.Role{ObjectMeta: at("shop", "weak"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"list"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: at("shop", "weak"), Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "weak"}},
		&rbacv1.ClusterRole{ObjectMeta: at("", "weak"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gatewayclasses"}, Verbs: []string{"list"},
		}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: at("", "weak"), Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weak"}},
	)
	apiserver.AwaitRights(t, server.Config)
	weak := rest.CopyConfig(server.Config)
	weak.Impersonate.UserName = "weak"
	s, r = take(weak, "shop")
	if err := s.Complete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	v := s.Live("")
	check("with few rights", lines(v)[:2], "GatewayClass ours Pending", shop[0])
	var problems []string
	for _, p := range v.Problems {
		problems = append(problems, p.Error())
	}
	for _, want := range []string{"in namespace shop only", `cannot list resource "services"`, "Secret", "count as missing"} {
		if !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("the problems don't say %q:\n%s", want, strings.Join(problems, "\n"))
		}
	}
}
