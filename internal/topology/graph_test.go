package topology

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is an engine with the whole graph.
type world struct {
	engine *flow.Engine
	in     *Inputs
	graph  *Graph
}

func newWorld(o Options) *world {
	e := flow.New()
	in := NewInputs(e, kind.All)
	return &world{e, in, New(e, in, o)}
}

// set applies objects as one batch; a function that panicked fails the test.
func (w *world) set(t testing.TB, objects ...source.Object) *flow.Commit {
	t.Helper()
	return w.apply(t, source.Batch{Set: objects})
}

func (w *world) apply(t testing.TB, b source.Batch) *flow.Commit {
	t.Helper()
	c := w.engine.Update(func(tx *flow.Tx) { w.in.Apply(tx, b) })
	for _, f := range c.Failures {
		t.Fatalf("%v\n%s", f, f.Stack)
	}
	return c
}

// gateway returns a Gateway's node; nil where there is none.
func (w *world) gateway(name object.Name) (gw *Gateway) {
	w.engine.View(func(c *flow.Ctx) { gw, _ = flow.Get(c, w.graph.Gateways, name) })
	return gw
}

// settings are the options of a golden file.
type settings struct {
	ImplicitClass     string   `json:"implicitClass"`
	Local             []string `json:"local"` // addresses of this host; any when empty
	SharedHost        bool     `json:"sharedHost"`
	DefaultAddresses  []string `json:"defaultAddresses"`
	PortOffset        int      `json:"portOffset"`
	SystemAuthorities string   `json:"systemAuthorities"`
	Provisioned       bool     `json:"provisioned"` // and unprivileged
	HTTP3             bool     `json:"http3"`
	Tenants           bool     `json:"tenants"` // namespaces belong to different people
}

func (s settings) options() Options {
	o := Options{
		AnyName:        !s.Tenants,
		ControllerName: "gatehouse.dev/controller", ImplicitClass: s.ImplicitClass,
		SharedHost: s.SharedHost, DefaultAddresses: s.DefaultAddresses, PortOffset: s.PortOffset, SystemAuthorities: s.SystemAuthorities,
		Provisioned: s.Provisioned, Unprivileged: s.Provisioned,
	}
	if s.HTTP3 {
		o.Settings = &v1alpha1.Settings{Client: &v1alpha1.Client{HTTP3: &s.HTTP3}}
	}
	if len(s.Local) > 0 {
		o.LocalAddresses = func(ip string) bool { return slices.Contains(s.Local, ip) }
	}
	return o
}

// TestGolden protects every rule of the graph: each file of testdata holds objects
// and the nodes that they make. ${crt NAME} and ${key NAME} in an object stand for
// the PEM of a certificate and its key in base64, ${pem NAME} for the certificate's
// within quotes.
func TestGolden(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		w := newWorld(g.settings.options())
		w.set(t, g.objects...)
		got := w.print(t)
		if *update {
			g.archive.Files = slices.DeleteFunc(g.archive.Files, func(f txtar.File) bool { return f.Name == "nodes.yaml" })
			g.archive.Files = append(g.archive.Files, txtar.File{Name: "nodes.yaml", Data: []byte(got)})
			if err := os.WriteFile(g.path, txtar.Format(g.archive), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if d := gocmp.Diff(g.nodes, got); d != "" {
			t.Errorf("nodes differ (-want +got), go test -update writes them anew:\n%s", d)
		}
	})
}

// The printed forms are for people: conditions and references on one line each,
// and what is as it should be is left out.

type printed struct {
	Classes     map[string]string         `json:"classes,omitempty"`
	Gateways    map[string]printedGateway `json:"gateways,omitempty"`
	Sets        map[string]printedSet     `json:"sets,omitempty"`
	Routes      map[string]printedRoute   `json:"routes,omitempty"`
	Attachments map[string][]string       `json:"attachments,omitempty"`
	Policies    map[string][]string       `json:"policies,omitempty"` // their ancestors
}

type printedGateway struct {
	Class      string                     `json:"class,omitempty"`
	Frozen     bool                       `json:"frozen,omitempty"`
	Parameters *v1alpha1.Settings         `json:"parameters,omitempty"`
	Conditions []string                   `json:"conditions,omitempty"`
	Addresses  []string                   `json:"addresses,omitempty"`
	Sets       int                        `json:"sets,omitempty"`
	Listeners  map[string]printedListener `json:"listeners"`
}

type printedSet struct {
	Gateway    string                     `json:"gateway"`
	Conditions []string                   `json:"conditions,omitempty"`
	Listeners  map[string]printedListener `json:"listeners,omitempty"`
}

type printedListener struct {
	Serves       string   `json:"serves"`
	Kinds        *string  `json:"kinds,omitempty"`
	Namespaces   string   `json:"namespaces,omitempty"`
	Certificates []string `json:"certificates,omitempty"`
	Conditions   []string `json:"conditions,omitempty"`
	Attached     int      `json:"attached,omitempty"`
}

type printedRoute struct {
	ResolvedRefs string     `json:"resolvedRefs,omitempty"`
	Parents      []string   `json:"parents"`
	Rules        [][]string `json:"rules,omitempty"`
}

// conditions prints those that tell of something wrong, or have a note.
func conditions(list ...metav1.Condition) []string {
	var out []string
	for _, c := range list {
		good := c.Status == metav1.ConditionTrue && c.Type == c.Reason ||
			c.Type == string(gwv1.ListenerConditionConflicted) && c.Status == metav1.ConditionFalse
		if !good || strings.Contains(c.Message, "; ") {
			out = append(out, printCondition(c))
		}
	}
	return out
}

func printCondition(c metav1.Condition) string {
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// print renders every node of the graph.
func (w *world) print(t testing.TB) string {
	t.Helper()
	out := printed{map[string]string{}, map[string]printedGateway{}, map[string]printedSet{}, map[string]printedRoute{}, map[string][]string{}, map[string][]string{}}
	w.engine.View(func(c *flow.Ctx) {
		for name, class := range flow.All(c, w.graph.Classes) {
			out.Classes[name] = printCondition(class.Accepted)
		}
		for name, gw := range flow.All(c, w.graph.Gateways) {
			out.Gateways[name.String()] = printGateway(c, w.graph, gw)
		}
		for name, s := range flow.All(c, w.graph.ListenerSets) {
			out.Sets[name.String()] = printSet(c, w.graph, s)
		}
		for key, r := range flow.All(c, w.graph.Routes) {
			out.Routes[key.String()] = printRoute(c, w.graph, key, r)
		}
		for key, a := range flow.All(c, w.graph.Attachments) {
			hosts := make([]string, len(a.Hosts))
			for i, h := range a.Hosts {
				hosts[i] = h.Domain
				if h.Hostname != h.Domain {
					hosts[i] += fmt.Sprintf(" of %q", h.Hostname)
				}
			}
			out.Attachments[fmt.Sprintf("%s by %s %d", key, a.Frontend.Protocol, a.Frontend.Port)] = hosts
		}
		for name, ancestors := range flow.All(c, w.graph.Ancestors) {
			policy, _ := flow.Get(c, w.graph.BackendTLSPolicies, name)
			lines := conditions(policy.ResolvedRefs)
			for _, a := range ancestors {
				lines = append(lines, fmt.Sprintf("%s: %s", a.Gateway, printCondition(a.Accepted)))
			}
			out.Policies[name.String()] = lines
		}
		if r, p := maps.Collect(flow.All(c, w.graph.Routes)), maps.Collect(flow.All(c, w.graph.parents)); len(r) != len(p) {
			t.Errorf("%d routes, but %d with parents", len(r), len(p))
		}
	})
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func printGateway(c *flow.Ctx, g *Graph, gw *Gateway) printedGateway {
	p := printedGateway{
		Conditions: conditions(gw.Accepted, gw.ResolvedRefs),
		Addresses:  gw.Addresses, Listeners: map[string]printedListener{},
	}
	if gw.Class != "gatehouse" {
		p.Class = gw.Class
	}
	p.Frozen = gw.Frozen
	if !reflect.ValueOf(*gw.Parameters).IsZero() {
		p.Parameters = gw.Parameters
	}
	if gw.Unusable != nil {
		p.Conditions = append(p.Conditions, printCondition(*gw.Unusable))
	}
	for _, l := range gw.Listeners {
		p.Listeners[strings.TrimSpace(l.Key.Name()+" "+l.Hostname)] = printListener(c, g, g.Listeners, l)
	}
	p.Sets, _ = flow.Get(c, g.AttachedSets, gw.Name)
	return p
}

func printSet(c *flow.Ctx, g *Graph, s *ListenerSet) printedSet {
	p := printedSet{Gateway: s.Gateway.String(), Conditions: conditions(s.Accepted), Listeners: map[string]printedListener{}}
	if s.Unusable != nil {
		p.Conditions = append(p.Conditions, printCondition(*s.Unusable))
	}
	for _, l := range s.Listeners {
		p.Listeners[strings.TrimSpace(l.Key.Name()+" "+l.Hostname)] = printListener(c, g, g.SetListeners, l)
	}
	return p
}

func printListener(c *flow.Ctx, g *Graph, all flow.Table[ListenerKey, *Listener], l *Listener) printedListener {
	p := printedListener{Serves: "nothing", Conditions: conditions(l.Conditions...)}
	if l.Serves {
		p.Serves = fmt.Sprintf("%s %d as %d", l.Protocol, l.Port, l.BindPort)
		if l.Passthrough {
			p.Serves += ", passed through"
		}
	}
	if kinds := kindNames(l.Kinds); kinds != "HTTPRoute and GRPCRoute" {
		p.Kinds = &kinds
	}
	if l.Namespaces.From != gwv1.NamespacesFromSame {
		p.Namespaces = strings.TrimSpace(string(l.Namespaces.From) + " " + selectorText(l.Namespaces.Selector))
	}
	for i, name := range l.Certificates {
		p.Certificates = append(p.Certificates, name.String()+" until "+l.Validity[i].NotAfter.Format("2006-01-02"))
	}
	p.Attached, _ = flow.Get(c, g.AttachedRoutes, l.Key)
	if same, ok := flow.Get(c, all, l.Key); !ok || !same.Equal(l) {
		p.Serves += ", and the table of listeners says otherwise"
	}
	return p
}

func printRoute(c *flow.Ctx, g *Graph, key object.Key, r *Route) printedRoute {
	var p printedRoute
	if bad := conditions(r.ResolvedRefs()); len(bad) > 0 {
		p.ResolvedRefs = bad[0]
	}
	parents := g.Parents(c, key)
	refs := ParentRefs(r.Object)
	for _, parent := range parents {
		index := "default"
		for i := range refs {
			if sameRef(parent.Ref, &refs[i]) {
				index = strconv.Itoa(i)
			}
		}
		accepted := "accepted"
		if parent.Accepted() != condition.RouteAccepted() {
			accepted = printCondition(parent.Accepted())
		}
		p.Parents = append(p.Parents, fmt.Sprintf("%s %s: %s", index, parent.Gateway, accepted))
	}
	for _, rule := range r.Rules {
		refs := []string{}
		for _, b := range rule.Backends {
			refs = append(refs, printBackend(b))
		}
		for _, m := range rule.Mirrors {
			refs = append(refs, "mirror "+printBackend(m))
		}
		p.Rules = append(p.Rules, refs)
	}
	return p
}

func printBackend(b BackendRef) string {
	if b.Problem != nil {
		return printCondition(*b.Problem)
	}
	to := b.Backend.Backend()
	text := fmt.Sprintf("%s:%d", to.Object.Name, to.Port)
	if to.Object.Kind != kind.Service {
		text = to.Object.Kind.Name() + " " + text
	}
	for _, part := range []string{to.PortName, string(to.Protocol)} {
		if part != "" && part != string(ir.HTTP1) {
			text += " " + part
		}
	}
	if tls := to.TLS; !tls.IsZero() {
		text += fmt.Sprintf(" TLS %s %v %v", tls.ServerName, tls.Names.Slice(), tls.Authorities.Authorities())
	}
	if to.DNS != "" {
		text += fmt.Sprintf(" → %s:%d", to.DNS, to.TargetPort)
	}
	return text
}
