package migrate

import (
	"cmp"
	"fmt"
	"maps"

	networkingv1 "k8s.io/api/networking/v1"
)

// Made is an object, and the Ingress that it is made of, NAMESPACE/NAME; empty for several.
type Made struct {
	Object

	Ingress string
}

// closed is what is refused.
type closed struct {
	all       bool
	ingresses map[string]bool
	whole     map[string]bool // Ingresses whose hosts are refused
	hosts     map[string]bool // by hostKey
	serving   bool            // the result is served beside what somebody has written
}

// ConvertClosed is Convert for who serves the result at once. An Ingress of which something that protects can't be
// converted is refused: its paths answer 503, and so do whole hosts where what it says is for the host, or where
// nobody knows which requests its paths are for. What the controller's ConfigMap says is for all Ingresses.
// Others that are refused come with it; whole are those of them whose hosts are refused.
func ConvertClosed(input Input, options Options, refused, whole map[string]bool) ([]Made, Report) {
	what := closed{ingresses: maps.Clone(refused), whole: whole, hosts: map[string]bool{}, serving: true}
	if what.ingresses == nil {
		what.ingresses = map[string]bool{}
	}
	var why Report
	told := map[Finding]bool{}
	for {
		c := convert(input, options, what)
		grown := false
		var rest Report
		for _, f := range c.report {
			if !f.Opens {
				rest = append(rest, f)
				continue
			}
			if !told[f] {
				told[f] = true
				why = append(why, f)
			}
			grown = what.add(f) || grown
		}
		if grown {
			continue
		}
		made := make([]Made, len(c.out))
		for i, o := range c.out {
			made[i] = Made{o, c.of[i]}
		}
		rest = append(rest, why...)
		rest.sort()
		return made, rest
	}
}

// add refuses what lets something through, and reports whether that is news.
func (w *closed) add(f Finding) bool {
	if f.Ingress == "" {
		was := w.all
		w.all = true
		return !was
	}
	was := w.ingresses[f.Ingress] && (f.host == "" || w.hosts[f.host])
	w.ingresses[f.Ingress] = true
	if f.host != "" {
		w.hosts[f.host] = true
	}
	return !was
}

// hostKey names a host, or what is for all that no other one has.
func hostKey(host string) string { return cmp.Or(host, "*") }

// refuses reports whether an Ingress is refused.
func (c *conversion) refuses(in *ingress) bool { return c.closed.all || c.closed.ingresses[in.name()] }

// guardName is the name of a policy that protects an Ingress. Where the result is served, no other object has it by
// accident: one that somebody has written would hide it.
func (c *conversion) guardName(in *ingress) string {
	if c.closed.serving {
		return in.Name + ".made-of-ingress"
	}
	return in.Name
}

// speaksForHosts reports whether an Ingress protects what others serve on its hosts too.
func (in *ingress) speaksForHosts() bool {
	return in.annotation("auth-tls-secret") != "" || in.annotation("server-snippet") != ""
}

// close has a host answer 503 if it is refused whole.
func (c *conversion) close(s *server) {
	if !s.closed && !c.closed.hosts[hostKey(s.host)] {
		return
	}
	told := map[*ingress]bool{}
	for _, l := range s.locations {
		if !c.refuses(l.of) && !told[l.of] {
			told[l.of] = true
			c.find(l.of, Finding{Verdict: NotPossible, Message: fmt.Sprintf("host %s answers 503, since another Ingress protects it in a way that can't be converted", hostKey(s.host))})
		}
	}
	s.regex, s.passthrough = false, false
	s.locations = []*location{{of: s.first, path: "/", kind: networkingv1.PathTypePrefix, refused: true}}
}
