package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

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
	// Remotes are the config servers that objects come from.
	Remotes []source.Remote `json:"remotes,omitempty"`
}

// Item is an object with its status, in the shape that kubectl would show.
type Item struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        ItemMeta `json:"metadata"`
	Summary         Summary  `json:"summary"`
	// Place is where the object stands, as compilers write it; empty for one that no file has.
	Place string `json:"place,omitempty"`
	// Status is a pointer to the status of the kind.
	Status any `json:"status"`

	kind    *kind.Descriptor
	gateway object.Name // whose listeners the summary has; zero without listeners
}

// ItemMeta names an object.
type ItemMeta struct {
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// CreationTimestamp is zero for objects whose age nobody knows.
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitzero"`
}

// Summary is an item for a table's row.
type Summary struct {
	State   string `json:"state"` // one word, or the reason of what is wrong
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
	Class   string `json:"class,omitempty"`
	// Parameters are what a GatewayClass or a Gateway names for its proxies.
	Parameters string `json:"parameters,omitempty"`
	// AttachedSets counts the ListenerSets that a Gateway has accepted.
	AttachedSets int      `json:"attachedListenerSets,omitempty"`
	Hosts        []string `json:"hosts,omitempty"`
	Parents      []string `json:"parents,omitempty"`
	// SetGateways are the Gateways of those parents that are ListenerSets, by the parent.
	SetGateways map[string]string `json:"setGateways,omitempty"`
	Path        string            `json:"path,omitempty"`     // a path that the route takes
	Redirect    bool              `json:"redirect,omitempty"` // which is answered by a redirect
	Call        string            `json:"call,omitempty"`     // of a GRPCRoute: what to ask with grpcurl
	Listeners   []ListenerRow     `json:"listeners,omitempty"`
	// Endpoints are those of a route's backends; nil where none of these has any of its own.
	Endpoints *Endpoints `json:"endpoints,omitempty"`
	// Policies are the kinds of inherited policies of which something is in force for the route, or a rule of it.
	Policies []string `json:"policies,omitempty"`
	// WaitsFor are the objects with which something is wrong that is told there, and for which
	// alone this one is not in order.
	WaitsFor []string `json:"waitsFor,omitempty"`
	// RefusedEdit says why the newest version of the object was refused, where an
	// earlier one stays in force.
	RefusedEdit string `json:"refusedEdit,omitempty"`
	// RefusedSince is when the earlier version became outdated; zero if it was so before
	// the process started.
	RefusedSince time.Time `json:"refusedSince,omitzero"`

	own string // the message without what is said of the refused edit
}

// Endpoints count addresses.
type Endpoints struct {
	Ready int `json:"ready"`
	All   int `json:"all"`
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
	// Notes are about certificates, for one, of which nothing is wrong yet.
	Notes string `json:"notes,omitempty"`
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

// Key names the object as logs do: kind, namespace and name.
func (i Item) Key() string {
	if i.Metadata.Namespace == "" {
		return i.Kind + " " + i.Metadata.Name
	}
	return i.Kind + " " + i.Metadata.Namespace + "/" + i.Metadata.Name
}

// object is the key of what the item shows, which a view of this process knows.
func (i Item) object() object.Key {
	return object.Key{Kind: i.kind.Kind, Name: object.Name{Namespace: i.Metadata.Namespace, Name: i.Metadata.Name}}
}

// Of returns the objects of a pipeline with their statuses, sorted by kind and name.
// The statuses are copies.
func Of(p *pipeline.Pipeline) View { return of(p, nil) }

// of is Of with the statuses that told gives, where it is not nil.
func of(p *pipeline.Pipeline, told func(object.Key) any) View {
	v := View{Items: []Item{}}
	p.Engine.View(func(c *flow.Ctx) {
		for _, show := range rows(p) {
			show(c, everything, told, func(it Item) { v.Items = append(v.Items, it) })
		}
		p.AllProblems(c, func(problem source.Problem) { v.Problems = append(v.Problems, problem) })
		v.finish(c, p)
		v.place(c, p)
	})
	return v
}

func everything(object.Key) bool { return true }

// finish says of the objects of a view what others know of them.
func (v *View) finish(c *flow.Ctx, p *pipeline.Pipeline) {
	v.sort(p.Kinds)
	v.behindSets()
	v.plain(c, p)
	v.gather(c, p)
	v.blame()
}

// place says of objects, and of what is wrong with them that no file has, where they stand.
func (v *View) place(c *flow.Ctx, p *pipeline.Pipeline) {
	type place struct {
		file string
		line int
	}
	places := map[object.Key]place{}
	p.Places(c, func(file string, at source.Place) { places[at.Key] = place{file, at.Line} })
	for i := range v.Items {
		if at, ok := places[v.Items[i].object()]; ok {
			v.Items[i].Place = source.Problem{File: at.file, Line: at.line}.Place()
		}
	}
	for i := range v.Problems {
		if at, ok := places[v.Problems[i].Key]; ok && v.Problems[i].File == "" {
			v.Problems[i].File, v.Problems[i].Line = at.file, at.line
		}
	}
}

// Told is the message of the item's row, with its place where something is wrong with it.
func (i Item) Told() string {
	message := i.Summary.Message
	_, _, bad := i.Summary.Trouble()
	switch {
	case !bad || i.Place == "" || i.Summary.RefusedEdit != "":
		return message
	case message == "":
		return i.Place
	}
	return message + " (" + i.Place + ")"
}

// sort puts objects and problems in the order in which they are shown.
func (v *View) sort(kinds *kind.Table) {
	sortItems(kinds, v.Items)
	slices.SortStableFunc(v.Problems, func(a, b source.Problem) int {
		if by := cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)); by != 0 || a.File != "" {
			return by // a source tells of a file in order: the cause before what follows
		}
		return cmp.Or(strings.Compare(a.Message, b.Message), a.Key.Compare(b.Key), strings.Compare(a.Field, b.Field))
	})
}

// sortItems sorts by kind, in the order in which tables show them, then by name.
func sortItems(kinds *kind.Table, items []Item) {
	order := map[string]int{} // those of other families come after these, by name
	for d := range kinds.Rows() {
		if d.Family == kind.Front {
			order[d.Kind.Name()] = len(order)
		}
	}
	rank := func(name string) int {
		if n, ok := order[name]; ok {
			return n
		}
		return len(order)
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(
			cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace),
			strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
}

// refusedEdit is the state of an object whose newest version was refused while an
// earlier one, which is in order, stays in force.
const refusedEdit = "RefusedEdit"

// blame makes the rows of objects say so whose newest version is refused. In force is
// something else in their place: a stand-in, or the last valid version, which may be in order. What
// is wrong with the last valid version itself stays in its row.
func (v *View) blame() {
	refused, edits := map[string]source.Problem{}, map[string]string{}
	for _, p := range v.Problems {
		for k := range p.Outdated {
			if key := k.String(); edits[key] == "" {
				edits[key] = placed(p, k)
			}
		}
		if key := p.Key.String(); p.Refuses() && refused[key].Reason == "" {
			refused[key] = p
		}
	}
	for i := range v.Items {
		key, sum := v.Items[i].Key(), &v.Items[i].Summary
		if p, ok := refused[key]; ok {
			sum.State, sum.OK, sum.Message = string(source.Invalid), false, complaint(p)
			v.Items[i].refuse(p)
		}
		if edit := edits[key]; edit != "" {
			sum.RefusedEdit, sum.own = edit, sum.Message
			if sum.OK {
				sum.State, sum.OK, sum.own = refusedEdit, false, ""
			}
			sum.tellEdit(time.Time{})
		}
	}
}

// refuse replaces what the status says of a stand-in, which is there in the place of an object
// that isn't: why that one is refused, and not the stand-in.
func (i *Item) refuse(p source.Problem) {
	if i.kind == nil || i.kind.Status == nil || i.Status == nil {
		return
	}
	whys := []metav1.Condition{condition.RouteUnsupportedValue(p.Field, p.Message)}
	if whys[0].Message = complaint(p); i.kind.Family == kind.Policy {
		accepted := condition.PolicyUnusable(complaint(p))
		whys = []metav1.Condition{accepted, condition.PolicyNotProgrammed(accepted)}
	}
	i.Status = i.kind.Status.WithConditions(i.Status, func(_ string, list []metav1.Condition) []metav1.Condition {
		for at := range list {
			for _, why := range whys {
				if c := &list[at]; c.Type == why.Type && (c.Status == metav1.ConditionTrue || c.Reason == why.Reason) {
					c.Status, c.Reason, c.Message = why.Status, why.Reason, why.Message
				}
			}
		}
		return list
	})
}

// tellEdit says in the message that an old version is in force, since when if that is
// known, and why.
func (s *Summary) tellEdit(now time.Time) {
	since := ""
	if at := s.RefusedSince; !at.IsZero() {
		layout := "15:04"
		if y, m, d := at.Date(); now.Sub(at) >= 24*time.Hour || d != now.Day() || m != now.Month() || y != now.Year() {
			layout = "2 Jan 15:04"
		}
		since = " since " + at.Format(layout)
	}
	s.Message = "old version in force" + since + ": " + s.RefusedEdit
	if s.own != "" {
		s.Message = s.own + "; " + s.Message
	}
}

// placed is a complaint for the row of an object, with the place that it is about: a line, in
// the object's own file where the problem names the object.
func placed(p source.Problem, of object.Key) string {
	place := ""
	if p.Key != of {
		place = p.File
	}
	switch {
	case p.Line > 0 && place != "":
		place = fmt.Sprintf("%s:%d: ", place, p.Line)
	case p.Line > 0:
		place = fmt.Sprintf("line %d: ", p.Line)
	case place != "":
		place += ": "
	}
	return place + complaint(p)
}

// complaint is the message of a problem, with the field that it is about.
func complaint(p source.Problem) string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}
