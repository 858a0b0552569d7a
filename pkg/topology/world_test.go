package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// ColorPolicy is a policy of a kind that nobody else has.
type ColorPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`
		Overrides  bool                                             `json:"overrides"`
		Merge      bool                                             `json:"merge"`
		Colors     map[string]string                                `json:"colors"`
	} `json:"spec"`
}

// DeepCopyObject returns a copy.
func (o *ColorPolicy) DeepCopyObject() runtime.Object { c := *o; return &c }

func colorSpec(o *ColorPolicy) (topology.Spec[string], error) {
	for _, color := range o.Spec.Colors {
		if color == "invisible" {
			return topology.Spec[string]{}, errors.New("spec.colors has invisible, which is no color")
		}
	}
	strategies := map[[2]bool]topology.Strategy{
		{false, false}: topology.AtomicDefaults, {false, true}: topology.MergeDefaults,
		{true, false}: topology.AtomicOverrides, {true, true}: topology.MergeOverrides,
	}
	return topology.Spec[string]{Strategy: strategies[[2]bool{o.Spec.Overrides, o.Spec.Merge}], Rules: o.Spec.Colors}, nil
}

func colors(direct bool) topology.Kind[*ColorPolicy, string] {
	return topology.Kind[*ColorPolicy, string]{
		Group: "example.com", Kind: "ColorPolicy", Spec: colorSpec, Direct: direct,
		Targets: func(o *ColorPolicy) []topology.Target { return topology.Targets(o.Spec.TargetRefs) },
	}
}

// world is a graph with color policies.
type world struct {
	*topology.Graph
	colors *topology.Policies[*ColorPolicy, string]
	age    time.Time
}

func newWorld(t *testing.T, direct bool, manifests ...string) *world {
	g := topology.New(topology.Options{})
	w := &world{Graph: g, colors: topology.AddPolicies(g, colors(direct)), age: time.Unix(1_700_000_000, 0)}
	w.apply(t, manifests...)
	return w
}

// apply sets the objects of manifests.
func (w *world) apply(t *testing.T, manifests ...string) *topology.Changes {
	t.Helper()
	return w.update(t, w.objects(t, manifests...))
}

// objects reads manifests. Each object is younger than those before it.
func (w *world) objects(t *testing.T, manifests ...string) (objects []topology.Object) {
	t.Helper()
	for text := range strings.SplitSeq(strings.Join(manifests, "\n---\n"), "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind == "" {
			continue
		}
		o := map[string]topology.Object{
			"GatewayClass": &gwv1.GatewayClass{}, "Gateway": &gwv1.Gateway{}, "ListenerSet": &gwv1.ListenerSet{},
			"HTTPRoute": &gwv1.HTTPRoute{}, "Service": &corev1.Service{}, "ColorPolicy": &ColorPolicy{}, "Namespace": &corev1.Namespace{},
		}[meta.Kind]
		if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		w.age = w.age.Add(time.Second)
		o.SetCreationTimestamp(metav1.NewTime(w.age))
		if o.GetNamespace() == "" && meta.Kind != "GatewayClass" && meta.Kind != "Namespace" {
			o.SetNamespace("ns")
		}
		o.GetObjectKind().SetGroupVersionKind(runtimeKind(o, meta.Kind))
		objects = append(objects, o)
	}
	return objects
}

func (w *world) update(t *testing.T, set []topology.Object, deleted ...topology.Node) *topology.Changes {
	t.Helper()
	ch := w.Update(func(tx *topology.Tx) {
		if err := tx.Set(set...); err != nil {
			t.Error(err)
		}
		tx.Delete(deleted...)
	})
	if err := ch.Err(); err != nil {
		t.Fatal(err)
	}
	return ch
}

// print writes a path as gateway/route, with the listener and the rule where they are not
// the first.
func print(p topology.Path) string {
	text := p.Gateway().Name + " " + p.Route().Name
	if p.RuleIndex() > 0 {
		text += " " + p.Rule().Section
	}
	return text
}

// inForce writes what is in force on a path.
func inForce(e topology.Effective[string]) string {
	var out []string
	for _, r := range e.Rules() {
		out = append(out, fmt.Sprintf("%s=%s(%s)", r.Name, r.Rule, r.From.Policy.Name))
	}
	return strings.Join(out, " ")
}

// effective writes what is in force on all paths.
func (w *world) effective() string {
	var out []string
	for _, p := range w.Paths(topology.Node{}) {
		out = append(out, print(p)+": "+inForce(w.colors.Effective(p)))
	}
	return strings.Join(out, "\n")
}

// told writes what there is to say of a policy.
func (w *world) told(name string) string {
	var out []string
	for _, a := range w.colors.Ancestors("ns", name) {
		text := a.Of.Name + " " + a.Accepted.Reason
		if c := a.Programmed(); c.Reason != "Programmed" {
			text += ": " + c.Message
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func names(nodes []topology.Node) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.String()
	}
	return strings.Join(out, ", ")
}

func runtimeKind(o topology.Object, kind string) schema.GroupVersionKind {
	switch o.(type) {
	case *corev1.Service, *corev1.Namespace:
		return corev1.SchemeGroupVersion.WithKind(kind)
	case *ColorPolicy:
		return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
	default:
		return schema.GroupVersionKind{Group: topology.GatewayGroup, Version: "v1", Kind: kind}
	}
}

func gateway(name string, more string) string {
	return fmt.Sprintf(`
kind: Gateway
metadata: {name: %s}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP%s}]}`, name, more)
}

func route(name, gateway string, more string) string {
	return fmt.Sprintf(`
kind: HTTPRoute
metadata: {name: %s}
spec: {parentRefs: [{name: %s}]%s}`, name, gateway, more)
}

func color(name, kind, target, spec string) string {
	group := "gateway.networking.k8s.io"
	if kind == "Service" {
		group = `""`
	}
	target, section, _ := strings.Cut(target, "#")
	if section != "" {
		section = ", sectionName: " + section
	}
	return fmt.Sprintf(`
kind: ColorPolicy
metadata: {name: %s}
spec: {targetRefs: [{group: %s, kind: %s, name: %s%s}], %s}`, name, group, kind, target, section, spec)
}

const class = `
kind: GatewayClass
metadata: {name: any}
spec: {controllerName: example.com/anybody}`

func service(name string) string {
	return fmt.Sprintf("kind: Service\nmetadata: {name: %s}\nspec: {ports: [{name: http, port: 80}]}", name)
}

func to(service string) string {
	return fmt.Sprintf(`, rules: [{backendRefs: [{name: %s, port: 80}]}]`, service)
}

func targetRef(group, kind, name string) (out gwv1.LocalPolicyTargetReferenceWithSectionName) {
	out.Group, out.Kind, out.Name = gwv1.Group(group), gwv1.Kind(kind), gwv1.ObjectName(name)
	return out
}
