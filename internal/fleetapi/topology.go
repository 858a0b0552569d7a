package fleetapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// Names of the drawings: each namespace with something to draw has one.
const (
	Topologies       = "topologies"
	TopologyName     = "topology"
	topologyKind     = "Topology"
	topologyListKind = "TopologyList"
)

// maxDrawing bounds each form of a drawing, in bytes: clients that read what an object of Kubernetes may have read it.
const maxDrawing = 900 << 10

// Topology is how the objects of a namespace hang together.
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            TopologyStatus `json:"status"`
}

// TopologyStatus is the drawing. A list has numbers alone.
type TopologyStatus struct {
	Nodes    int `json:"nodes"`    // of the namespace itself, sections of objects and policies too
	Missing  int `json:"missing"`  // of those, what is referred to and doesn't exist
	Policies int `json:"policies"` // of those
	// DOT is the drawing for Graphviz, and Drawing for programs.
	DOT     string            `json:"dot,omitempty"`
	Drawing *topology.Drawing `json:"drawing,omitempty"`
	// TooLarge says why one of the two, or both, are left out.
	TooLarge string `json:"tooLarge,omitempty"`
}

type topologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Topology `json:"items"`
}

// topologyColumns are what `kubectl get` shows.
var topologyColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "It is the same in all namespaces."},
	{Name: "Nodes", Type: "integer", Description: "Objects of the namespace, their sections and policies."},
	{Name: "Policies", Type: "integer", Description: "Policies among them."},
	{Name: "Missing", Type: "integer", Description: "What is referred to and doesn't exist."},
}

func (t *Topology) row() (cells []any, meta metav1.ObjectMeta, object any) {
	return []any{t.Name, t.Status.Nodes, t.Status.Policies, t.Status.Missing}, t.ObjectMeta, t
}

// counted are the topologies of all namespaces, or of one, without drawings.
func counted(d topology.Drawing, namespace string) []Topology {
	of := map[string]*Topology{}
	for _, n := range d.Nodes {
		if n.Namespace == "" || namespace != "" && n.Namespace != namespace {
			continue
		}
		t := of[n.Namespace]
		if t == nil {
			t = &Topology{
				TypeMeta: metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: topologyKind}, ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: TopologyName},
			}
			of[n.Namespace] = t
		}
		t.Status.Nodes++
		if n.Policy {
			t.Status.Policies++
		}
		if n.Missing {
			t.Status.Missing++
		}
	}
	out := make([]Topology, 0, len(of))
	for _, t := range of {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Topology) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// draw gives a topology its drawing.
func (t *Topology) draw(d topology.Drawing) {
	var left []string
	if t.Status.DOT = d.DOT(); len(t.Status.DOT) > maxDrawing {
		left = append(left, fmt.Sprintf("dot would have %d bytes", len(t.Status.DOT)))
		t.Status.DOT = ""
	}
	if text, err := json.Marshal(d); err == nil && len(text) > maxDrawing {
		left = append(left, fmt.Sprintf("drawing would have %d bytes", len(text)))
	} else {
		t.Status.Drawing = &d
	}
	if len(left) > 0 {
		t.Status.TooLarge = strings.Join(left, ", ") + ", and " + strconv.Itoa(maxDrawing) + " is the most; `gatehouse topology -n " + t.Namespace + "` draws it"
	}
}

// topologies answers lists.
func (s *Server) topologies(w http.ResponseWriter, r *http.Request) {
	namespace := r.PathValue("namespace")
	s.drawn(w, r, "list", namespace, "", func(d topology.Drawing) (whole any, rows []Topology) {
		list := counted(d, namespace)
		return topologyList{TypeMeta: metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: topologyListKind}, Items: list}, list
	})
}

// topology answers for one namespace.
func (s *Server) topology(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	s.drawn(w, r, "get", namespace, name, func(d topology.Drawing) (whole any, rows []Topology) {
		list := counted(d, namespace)
		if len(list) == 0 || name != TopologyName {
			return nil, nil
		}
		list[0].draw(s.o.VisibleIn(d, namespace))
		return list[0], list
	})
}

// drawn answers with what is made of a drawing, for who may see it.
func (s *Server) drawn(w http.ResponseWriter, r *http.Request, verb, namespace, name string, what func(topology.Drawing) (whole any, rows []Topology)) {
	resource := schema.GroupResource{Group: Group, Resource: Topologies}
	as, err := formOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.fail(w, apierrors.NewMethodNotSupported(resource, "watch"))
		return
	}
	if !s.may(w, r, verb, resource.Resource, selection{namespace: namespace, name: name}) {
		return
	}
	end, ok := s.begin(w, Topologies)
	if !ok {
		return
	}
	defer end()
	whole, rows := what(s.o.Draw())
	switch {
	case whole == nil:
		s.fail(w, apierrors.NewNotFound(resource, name))
	case as == nil:
		s.reply(w, http.StatusOK, whole)
	default:
		table := newTable(topologyColumns, len(rows))
		for i := range rows {
			table.Rows = append(table.Rows, as.row(rows[i].row()))
		}
		s.reply(w, http.StatusOK, table)
	}
}
