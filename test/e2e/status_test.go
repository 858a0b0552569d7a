//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusReport is what /status and `gatehouse status -o json` print.
type statusReport struct {
	Items    []statusItem    `json:"items"`
	Problems []statusProblem `json:"problems"`
}

// statusItem is one object with its status, the parts that tests look at.
type statusItem struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Summary struct {
		Message   string `json:"message"`
		Endpoints *struct {
			Ready, All int
		} `json:"endpoints"`
		Policies []string `json:"policies"`
	} `json:"summary"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Addresses  []struct {
			Value string `json:"value"`
		} `json:"addresses"`
		Listeners []struct {
			Name           string `json:"name"`
			AttachedRoutes int    `json:"attachedRoutes"`
			SupportedKinds []struct {
				Kind string `json:"kind"`
			} `json:"supportedKinds"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"listeners"`
		Parents []struct {
			ParentRef  statusRef          `json:"parentRef"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"parents"`
		Ancestors []struct {
			AncestorRef statusRef          `json:"ancestorRef"`
			Conditions  []metav1.Condition `json:"conditions"`
		} `json:"ancestors"`
		SupportedFeatures []statusFeature `json:"supportedFeatures"`
	} `json:"status"`
}

// statusFeature is a feature that a GatewayClass supports.
type statusFeature struct {
	Name string `json:"name"`
}

// statusRef names a parent of a route or an ancestor of a policy.
type statusRef struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
	Port        int    `json:"port"`
}

// is reports whether of means this one: by its name, NAME/SECTION or NAME:PORT,
// each also after its kind.
func (r statusRef) is(of string) bool {
	names := []string{r.Name, r.Name + "/" + r.SectionName, fmt.Sprintf("%s:%d", r.Name, r.Port)}
	if kind, name, ok := strings.Cut(of, " "); ok {
		return r.Kind == kind && slices.Contains(names, name)
	}
	return slices.Contains(names, of)
}

// part is what has conditions of its own.
type part struct {
	ref        statusRef
	conditions []metav1.Condition
}

// parts are the parents of a route or the ancestors of a policy.
func (i *statusItem) parts() []part {
	var all []part
	for _, p := range i.Status.Parents {
		all = append(all, part{p.ParentRef, p.Conditions})
	}
	for _, a := range i.Status.Ancestors {
		all = append(all, part{a.AncestorRef, a.Conditions})
	}
	return all
}

// statusProblem is something that is wrong with a file.
type statusProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Stale   bool   `json:"stale"`
}

// status asks the running process by its admin server, which is what the
// command `status` does, without the cost of a process for each look.
func (p *process) status() (*statusReport, error) {
	code, body, err := p.get("/status")
	if err != nil {
		return nil, err
	}
	var report statusReport
	if err := json.Unmarshal([]byte(body), &report); err != nil {
		return nil, permanent(fmt.Errorf("/status: %d: %w\n%s", code, err, clipped([]byte(body))))
	}
	return &report, nil
}

// find returns the object named as "Kind name" or "Kind namespace/name".
func (r *statusReport) find(object, namespace string) (*statusItem, error) {
	kind, name, _ := strings.Cut(object, " ")
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	for i, item := range r.Items {
		if item.Kind == kind && item.Metadata.Name == name && (item.Metadata.Namespace == namespace || item.Metadata.Namespace == "") {
			return &r.Items[i], nil
		}
	}
	return nil, fmt.Errorf("status names no %s %s/%s", kind, namespace, name)
}

// check compares the status of an object with what a conditions step wants.
func (s *step) checkStatus(report *statusReport, namespace string) error {
	item, err := report.find(s.Conditions, namespace)
	if err != nil {
		return err
	}
	var d differences
	if s.Addresses != nil {
		var got []string
		for _, a := range item.Status.Addresses {
			got = append(got, a.Value)
		}
		d.same("addresses", strings.Join(*s.Addresses, " "), strings.Join(got, " "))
	}
	if s.Listeners != nil {
		var got []string
		for _, l := range item.Status.Listeners {
			got = append(got, l.Name)
		}
		d.same("listeners", strings.Join(*s.Listeners, " "), strings.Join(got, " "))
	}
	if s.Parents != nil && len(item.Status.Parents) != *s.Parents {
		d.add("%d parents, want %d", len(item.Status.Parents), *s.Parents)
	}
	for _, feature := range s.Features {
		if !slices.Contains(item.Status.SupportedFeatures, statusFeature{feature}) {
			d.add("supportedFeatures has no %s", feature)
		}
	}
	if s.Of == "" && len(s.Are) == 0 && s.Attached == nil && s.Kinds == nil {
		return d.err()
	}
	conditions, found, ofListener := item.Status.Conditions, s.Of == "", false
	for _, l := range item.Status.Listeners {
		if l.Name != s.Of {
			continue
		}
		conditions, found, ofListener = l.Conditions, true, true
		if s.Attached != nil && l.AttachedRoutes != *s.Attached {
			d.add("attachedRoutes is %d, want %d", l.AttachedRoutes, *s.Attached)
		}
		if s.Kinds != nil {
			var got []string
			for _, k := range l.SupportedKinds {
				got = append(got, k.Kind)
			}
			slices.Sort(got)
			d.same("supportedKinds", strings.Join(*s.Kinds, " "), strings.Join(got, " "))
		}
	}
	for i, p := range item.parts() {
		if p.ref.is(s.Of) || s.Of == "" && i == 0 {
			conditions, found = p.conditions, true
			break
		}
	}
	if (s.Attached != nil || s.Kinds != nil) && !ofListener {
		return fmt.Errorf("%s has no listener %q to have attachedRoutes and supportedKinds", s.Conditions, s.Of)
	}
	if !found {
		return fmt.Errorf("the status of %s has no part %q", s.Conditions, s.Of)
	}
	for _, want := range s.Are {
		if got := describe(conditions, want); got != want {
			d.add("%s is %s, want %s", s.Conditions, got, want)
		}
	}
	return d.err()
}

// describe renders the condition that want names in want's own notation:
// Type=Status, Type=Status/Reason, or !Type for an absent one.
func describe(conditions []metav1.Condition, want string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(want, "!"), "=")
	for _, c := range conditions {
		if c.Type != name {
			continue
		}
		if strings.Contains(want, "/") {
			return fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
		}
		return fmt.Sprintf("%s=%s", c.Type, c.Status)
	}
	return "!" + name
}
