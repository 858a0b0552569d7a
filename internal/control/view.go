package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

func itoa(n int) string { return strconv.Itoa(n) }

// View is the state of everything that a person may ask about, at one commit.
// It is what `gatehouse status` gets and the live table shows.
type View struct {
	Ready    bool             `json:"ready"`
	Why      string           `json:"why,omitempty"` // why it is not ready
	Items    []Item           `json:"items"`
	Problems []source.Problem `json:"problems,omitempty"`
	Proxies  []Proxy          `json:"proxies,omitempty"`
	// Waiting are paths of the command line that can't be read yet.
	Waiting []string `json:"waiting,omitempty"`
}

// Item is an object with its status, in the shape that kubectl would show.
type Item struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        ItemMeta `json:"metadata"`
	Summary         Summary  `json:"summary"`
	// Status is a pointer to the status of the kind.
	Status any `json:"status"`
}

// ItemMeta names an object.
type ItemMeta struct {
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
}

// Summary is an item for a table's row.
type Summary struct {
	State     string        `json:"state"` // one word, or the reason of what is wrong
	OK        bool          `json:"ok"`
	Message   string        `json:"message,omitempty"`
	Class     string        `json:"class,omitempty"`
	Hosts     []string      `json:"hosts,omitempty"`
	Parents   []string      `json:"parents,omitempty"`
	Path      string        `json:"path,omitempty"`     // a path that the route takes
	Redirect  bool          `json:"redirect,omitempty"` // which is answered by a redirect
	Call      string        `json:"call,omitempty"`     // of a GRPCRoute: what to ask with grpcurl
	Listeners []ListenerRow `json:"listeners,omitempty"`
}

// ListenerRow is a listener of a Gateway or a ListenerSet.
type ListenerRow struct {
	Name     string   `json:"name"`
	Protocol string   `json:"protocol"`
	Hostname string   `json:"hostname,omitempty"`
	Port     int      `json:"port"` // where it listens
	Addrs    []string `json:"addresses,omitempty"`
	Routes   int32    `json:"routes"`
	State    string   `json:"state"`
	OK       bool     `json:"ok"`
	Message  string   `json:"message,omitempty"`
}

// Proxy is a Gateway's Envoy process.
type Proxy struct {
	Gateway  string    `json:"gateway"`
	Phase    string    `json:"phase"`
	Live     bool      `json:"live"`
	PID      int       `json:"pid,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Restarts int       `json:"restarts"`
	Adopted  bool      `json:"adopted,omitempty"`
	LastExit string    `json:"lastExit,omitempty"`
}

// View returns the current state.
func (s *Standalone) View() View {
	v := s.pipeline.View()
	v.Ready, v.Why = s.Ready()
	v.Waiting = s.Waiting()
	for i := range v.Items {
		s.times.fill(v.Items[i].key(), conditionsOf(v.Items[i].Status))
	}
	for gateway, st := range s.fleet.snapshot() {
		p := Proxy{
			Gateway: gateway.String(), Phase: string(st.Phase), Live: st.Live, PID: st.PID,
			Since: st.Since, Restarts: st.Restarts, Adopted: st.Adopted,
		}
		if st.LastExit != nil {
			p.LastExit = st.LastExit.String()
		}
		v.Proxies = append(v.Proxies, p)
	}
	slices.SortFunc(v.Proxies, func(a, b Proxy) int { return cmp.Compare(a.Gateway, b.Gateway) })
	return v
}

func (i Item) key() string {
	if i.Metadata.Namespace == "" {
		return i.Kind + " " + i.Metadata.Name
	}
	return i.Kind + " " + i.Metadata.Namespace + "/" + i.Metadata.Name
}

// View returns the objects with their statuses, sorted by kind and name. The
// statuses are copies.
func (p *Pipeline) View() View { return p.view(nil) }

// view is View with the statuses that told gives, where it is not nil.
func (p *Pipeline) view(told func(object.Key) any) View {
	v := View{Items: []Item{}}
	p.engine.View(func(c *flow.Ctx) {
		for _, kind := range p.reported {
			kind.items(c, told, func(it Item) { v.Items = append(v.Items, it) })
		}
		for _, list := range flow.All(c, p.problems) {
			v.Problems = append(v.Problems, list...)
		}
		for _, notice := range flow.All(c, p.notices) {
			v.Problems = append(v.Problems, notice)
		}
		for _, notice := range flow.All(c, p.undefaulted) {
			v.Problems = append(v.Problems, notice)
		}
	})
	order := map[string]int{"GatewayClass": 0, "Gateway": 1, "ListenerSet": 2}
	rank := func(kind string) int {
		if n, ok := order[kind]; ok {
			return n
		}
		return len(order)
	}
	slices.SortFunc(v.Items, func(a, b Item) int {
		return cmp.Or(
			cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace),
			strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	slices.SortFunc(v.Problems, func(a, b source.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Message, b.Message))
	})
	return v
}

func item(kind, namespace, name string, generation int64, status any) *Item {
	return &Item{
		TypeMeta: metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: kind},
		Metadata: ItemMeta{Namespace: namespace, Name: name, Generation: generation},
		Status:   status,
	}
}

func classItem(_ *flow.Ctx, class *topology.Class, s *gwv1.GatewayClassStatus) *Item {
	if class.Object == nil {
		return nil
	}
	out := item("GatewayClass", "", class.Name, class.Object.Generation, s)
	out.Summary = classSummary(s)
	return out
}

func (p *Pipeline) gatewayItem(c *flow.Ctx, gw *topology.Gateway, s *gwv1.GatewayStatus) *Item {
	out := item("Gateway", gw.Name.Namespace, gw.Name.Name, gw.Object.Generation, s)
	out.Summary = gatewaySummary(s)
	out.Summary.Class = string(gw.Object.Spec.GatewayClassName)
	out.Summary.Listeners = p.listenerRows(c, out.Summary.Listeners, gw.Listeners)
	return out
}

func (p *Pipeline) setItem(c *flow.Ctx, set *topology.ListenerSet, s *gwv1.ListenerSetStatus) *Item {
	out := item("ListenerSet", set.Name.Namespace, set.Name.Name, set.Object.Generation, s)
	out.Summary = setSummary(s)
	out.Summary.Parents = []string{set.Gateway.String()}
	out.Summary.Listeners = p.listenerRows(c, out.Summary.Listeners, set.Listeners)
	return out
}

// listenerRows adds to what a status tells of listeners where they are.
func (p *Pipeline) listenerRows(c *flow.Ctx, rows []ListenerRow, listeners []*topology.Listener) []ListenerRow {
	told := map[string]ListenerRow{}
	for _, row := range rows {
		told[row.Name] = row
	}
	out := make([]ListenerRow, 0, len(listeners))
	for _, l := range listeners {
		row := told[l.Key.Name]
		row.Name, row.Protocol, row.Hostname = l.Key.Name, string(l.Protocol), l.Hostname
		row.Port = int(l.Port) + p.opts.Topology.ClientOffset()
		if port, ok := flow.Get(c, p.ports, keyOfPort(l)); ok {
			row.Addrs = port.listener.Addresses
		}
		out = append(out, row)
	}
	return out
}

func routeItem(_ *flow.Ctx, r *topology.Route, s *gwv1.RouteStatus) *Item {
	out := item(r.Key.Kind.Name(), r.Key.Namespace, r.Key.Name.Name, r.Object.GetGeneration(), s)
	out.Summary = routeSummary(s)
	for _, parent := range s.Parents {
		ns := r.Key.Namespace
		if parent.ParentRef.Namespace != nil {
			ns = string(*parent.ParentRef.Namespace)
		}
		name := object.Name{Namespace: ns, Name: string(parent.ParentRef.Name)}.String()
		if parent.ParentRef.SectionName != nil {
			name += "/" + string(*parent.ParentRef.SectionName)
		}
		if kind := parent.ParentRef.Kind; kind != nil && *kind != "Gateway" {
			name = string(*kind) + " " + name
		}
		out.Summary.Parents = append(out.Summary.Parents, name)
	}
	out.Summary.Path, out.Summary.Redirect = sample(r.Object)
	out.Summary.Call = sampleCall(r.Object)
	for _, h := range topology.Hostnames(r.Object) {
		out.Summary.Hosts = append(out.Summary.Hosts, string(h))
	}
	return out
}
