package chart

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// bound is an API server with what the chart installs, and two who use it.
type bound struct {
	*testing.T
	admin, controller, tenant client.Client
}

// newBound installs the chart with more values.
func newBound(t *testing.T, values string) *bound {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	as := func(user string) client.Client {
		config := rest.CopyConfig(server.Config)
		config.Impersonate.UserName = user
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	b := &bound{t, as(""), as("system:serviceaccount:gatehouse-system:gatehouse"), as("tenant")}
	for _, namespace := range []string{"gatehouse-system", "team"} {
		b.must(b.apply(b.admin, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}"))
	}
	for doc := range bytes.SplitSeq(render(t, "--no-hooks", "--set", withoutCRDs+values), []byte("\n---\n")) {
		if o := parse(t, string(doc)); o.Object != nil {
			b.must(b.admin.Create(t.Context(), o))
		}
	}
	apiserver.AwaitRights(t, server.Config)
	return b
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func (b *bound) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// apply applies an object, given in YAML.
func (b *bound) apply(c client.Client, text string) error {
	b.Helper()
	return c.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(parse(b.T, text)), client.FieldOwner("test"), client.ForceOwnership)
}

// fleet applies the objects of a Gateway as the controller does.
func (b *bound) fleet(settings *v1alpha1.Settings, external ...string) error {
	b.Helper()
	limits := settings != nil && settings.Limits != nil
	objects, err := infra.Render(infra.Options{ControllerName: "gatehouse.dev/controller", Image: "image", Authorities: []byte("ca")}, &infra.Gateway{
		Name: object.Name{Namespace: "team", Name: "web"}, Class: "gatehouse", Ports: []infra.Port{{Port: 80, Target: 10080}},
		Settings: settings, ExternalIPs: external, Limits: limits,
	})
	b.must(err)
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		b.must(err)
		if err := b.apply(b.controller, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// trusts looks for the pods that count: those that are there have the password of their Redis,
// and its authority from an object of a kind.
func (b *bound) trusts(kind string) {
	b.Helper()
	var o appsv1.Deployment
	name := infra.Places{}.LimitsName(object.Name{Namespace: "team", Name: "web"}, "gatehouse").Name
	b.must(b.admin.Get(b.Context(), client.ObjectKey{Namespace: "team", Name: name}, &o))
	var from []string
	for _, v := range o.Spec.Template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			switch {
			case s.Secret != nil:
				from = append(from, "Secret "+s.Secret.Name)
			case s.ConfigMap != nil:
				from = append(from, "ConfigMap "+s.ConfigMap.Name)
			}
		}
	}
	for _, want := range []string{"Secret redis", kind + " redis-ca"} {
		if !slices.Contains(from, want) {
			b.Errorf("the pods that count have volumes of %v, and not of %s", from, want)
		}
	}
}

// attack is something that RBAC lets the controller do and that it never does.
type attack struct {
	does   string // create, delete or what is merged into the object
	object string
	policy string // that refuses it
}

// pod is a Deployment as the controller makes them, whose pods have further fields.
func pod(account, more string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: team, name: mine, ` + ours + `}, spec: {selector: {matchLabels: {a: b}},
template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: ` + account + `, automountServiceAccountToken: false, ` + more + `}}}}`
}

const (
	ours      = "labels: {app.kubernetes.io/managed-by: gatehouse}"
	container = "containers: [{name: proxy, image: i}]"
	selector  = "selector: {app.kubernetes.io/name: gatehouse-proxy}, ports: [{port: 80}]"
	create    = "create"
)

func configMap(namespace, name, more string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: " + namespace + ", name: " + name + ", " + more + "}}"
}

func service(spec string) string {
	return "{apiVersion: v1, kind: Service, metadata: {namespace: team, name: mine, " + ours + "}, spec: {" + spec + "}}"
}

var attacks = map[string]attack{
	"an object without our label":      {create, configMap("team", "mine", ""), "fleets"},
	"a system namespace":               {create, configMap("kube-system", "mine", ours), "fleets"},
	"a Secret":                         {create, "{apiVersion: v1, kind: Secret, metadata: {namespace: gatehouse-system, name: mine, " + ours + "}}", "fleets"},
	"a token of a ServiceAccount":      {create, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: gatehouse-system, name: gatehouse-ca, annotations: {kubernetes.io/service-account.name: admin}}}", "fleets"},
	"an object of others, changed":     {"{data: {a: b}}", configMap("team", "theirs", ""), "fleets"},
	"an object of others, taken over":  {"{metadata: {" + ours + "}}", configMap("team", "theirs", ""), "fleets"},
	"an object of others, deleted":     {"delete", configMap("team", "theirs", ""), "fleets"},
	"a Service of others' pods":        {create, service("selector: {app: theirs}, ports: [{port: 80}]"), "fleets"},
	"a Service without pods":           {create, service("ports: [{port: 80}]"), "fleets"},
	"a Service that is a name":         {create, service("type: ExternalName, externalName: victim.example"), "fleets"},
	"a Service with others' addresses": {create, service("externalIPs: [192.0.2.1], " + selector), "fleets"},
	"the network of the node":          {create, pod("mine", "hostNetwork: true, "+container), "pods"},
	"the processes of the node":        {create, pod("mine", "hostPID: true, "+container), "pods"},
	"the files of the node":            {create, pod("mine", "volumes: [{name: v, hostPath: {path: /}}], "+container), "pods"},
	"a privileged container":           {create, pod("mine", "containers: [{name: proxy, image: i, securityContext: {privileged: true}}]"), "pods"},
	"a privileged container at first":  {create, pod("mine", "initContainers: [{name: a, image: i, securityContext: {capabilities: {add: [SYS_ADMIN]}}}], "+container), "pods"},
	"the ServiceAccount of others":     {create, pod("theirs", container), "pods"},
	"a token for the API server":       {create, pod("mine", "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: token}}]}}], "+container), "pods"},
	"the spec of a class":              {"{spec: {description: mine}}", "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}}", "classes"},
	"a class of another name":          {create, "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: mine}, spec: {controllerName: gatehouse.dev/controller}}", "classes"},
	"the finalizers of another class":  {"{metadata: {finalizers: [example.com/mine]}}", "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: theirs}}", "classes"},
}

// try tries an attack, which leaves nothing behind.
func (b *bound) try(a attack) error {
	b.Helper()
	o := parse(b.T, a.object)
	switch a.does {
	case create:
		return b.controller.Create(b.Context(), o, client.DryRunAll)
	case "delete":
		return b.controller.Delete(b.Context(), o, client.DryRunAll)
	default:
		patch, err := yaml.YAMLToJSON([]byte(a.does))
		b.must(err)
		return b.controller.Patch(b.Context(), o, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
	}
}

// refused waits until the policy refuses an attack: the API server needs a moment to know
// its policies.
func (b *bound) refused(a attack) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := b.try(a)
		if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gatehouse-"+a.policy+"'") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Errorf("it isn't refused by the policy: %v", err)
			return
		}
	}
}

// theirs makes what attacks are about.
func (b *bound) theirs() {
	b.Helper()
	b.must(b.admin.Create(b.Context(), parse(b.T, configMap("team", "theirs", ""))))
	b.must(b.admin.Create(b.Context(), parse(b.T, "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: theirs}, spec: {controllerName: example.com/theirs}}")))
}

// TestAdmissionPolicy protects a cluster from a stolen token of the controller. RBAC can't
// tell one Deployment from another and lets it do all that is tried here; the policies
// refuse that, and what the controller does they let be.
func TestAdmissionPolicy(t *testing.T) {
	t.Run("RBAC alone", func(t *testing.T) {
		b := newBound(t, ",admissionPolicy.create=false")
		b.theirs()
		for name, a := range attacks {
			if err := b.try(a); err != nil {
				t.Errorf("%s can't be done anyway: %v", name, err)
			}
		}
	})
	t.Run("policies", func(t *testing.T) {
		b := newBound(t, "")
		b.theirs()
		for name, a := range attacks {
			t.Run(name, func(t *testing.T) { (&bound{t, b.admin, b.controller, b.tenant}).refused(a) })
		}
		b.must(b.fleet(&v1alpha1.Settings{Deployment: &v1alpha1.Deployment{
			Autoscaling:         &v1alpha1.Autoscaling{MaxReplicas: new(int32(3))},
			PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{MinAvailable: new(intstr.FromInt32(1))},
		}}))
		// The pods that count, with what those of a class may have: volumes of Secrets and ConfigMaps.
		for _, kind := range []string{"ConfigMap", "Secret"} {
			b.must(b.fleet(&v1alpha1.Settings{Limits: &v1alpha1.LimitsService{Replicas: new(int32(2)), Redis: &v1alpha1.Redis{
				Host: "redis.shared.svc", SecretRef: &v1alpha1.SecretRef{Name: "redis"},
				TLS: &v1alpha1.RedisTLS{ServerName: new("redis.shared"), CACertificateRef: &v1alpha1.CACertificateRef{Kind: kind, Name: "redis-ca"}},
			}}}))
			b.trusts(kind)
		}
		b.must(b.fleet(nil))
		for _, text := range []string{
			configMap("gatehouse-system", "gatehouse-settings", ""),
			"{apiVersion: v1, kind: Secret, metadata: {namespace: gatehouse-system, name: gatehouse-ca}}",
		} {
			b.must(b.controller.Create(t.Context(), parse(t, text)))
		}
		web := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: team, name: web-gatehouse}}")
		b.must(b.controller.Delete(t.Context(), web))
		class := parse(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}}")
		b.must(b.controller.Patch(t.Context(), class, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": ["example.com/a"]}}`))))
	})
	t.Run("as values ask for", func(t *testing.T) {
		b := newBound(t, ",admissionPolicy.pods=All,admissionPolicy.externalIPs=true")
		b.refused(attacks["an object without our label"])
		for _, name := range []string{"the network of the node", "a Service with others' addresses"} {
			b.must(b.try(attacks[name]))
		}
	})
}

// TestPolicyOfTheClaim protects the controllers from people who may write Leases in
// namespace default, as `edit` there permits: they would decide who writes.
func TestPolicyOfTheClaim(t *testing.T) {
	b := newBound(t, "")
	b.must(b.apply(b.admin, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: default, name: leases},
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}]}`))
	b.must(b.apply(b.admin, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: default, name: leases},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}, subjects: [{kind: User, name: tenant, apiGroup: rbac.authorization.k8s.io}]}`))
	lease := func(name, holder string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: default, name: "+name+"}, spec: {holderIdentity: "+holder+"}}")
	}
	claim := configuration.ClaimName("gatehouse.dev/controller")
	for deadline := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) { // until the policy is in force
		err := b.tenant.Create(t.Context(), lease(claim, "tenant"), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "which installation of Gatehouse") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a tenant may claim the controllerName: %v", err)
		}
	}
	b.must(b.tenant.Create(t.Context(), lease("another", "tenant")))
	b.must(b.controller.Create(t.Context(), lease(claim, "ours")))
	for what, err := range map[string]error{
		"update": b.tenant.Update(t.Context(), lease(claim, "tenant")), "delete": b.tenant.Delete(t.Context(), lease(claim, "")),
	} {
		if err == nil {
			t.Errorf("a tenant may %s the claim", what)
		}
	}
}
