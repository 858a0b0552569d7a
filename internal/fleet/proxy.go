package fleet

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// List is what one controller says of the proxies that are connected to it.
type List struct {
	Replica string  `json:"replica,omitempty"`
	Proxies []Proxy `json:"proxies"`
	// Namespace is that of the pods of all proxies; empty where each is in its Gateway's.
	Namespace string `json:"namespace,omitempty"`
}

// Proxy is what is known of one proxy.
type Proxy struct {
	Gateway string `json:"gateway"`       // namespace/name
	Pod     string `json:"pod,omitempty"` // in the Gateway's namespace, unless fleets are elsewhere
	State   State  `json:"state"`

	Node     string `json:"node,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Ready    *bool  `json:"ready,omitempty"` // nil where nobody has said
	Draining bool   `json:"draining,omitempty"`
	Envoy    string `json:"envoyVersion,omitempty"`

	Replica   string    `json:"replica,omitempty"` // to which controller it is connected
	Connected time.Time `json:"connectedSince,omitzero"`
	// Wanted and Acknowledged are hashes of all that the proxy is to have, and has acknowledged.
	Wanted       string `json:"wanted,omitempty"`
	Acknowledged string `json:"acknowledged,omitempty"`
	// LagSeconds is the age of the oldest change that it has not answered.
	LagSeconds float64  `json:"lagSeconds,omitempty"`
	Lacks      string   `json:"lacks,omitempty"` // what it has lacked for over a minute
	Refused    *Refusal `json:"refused,omitempty"`
	// Refusals says that a proxy of the Gateway refuses something, so that others may be without it too.
	Refusals bool `json:"refusals,omitempty"`
	// CertificateEnds is when the certificate ends that it has connected with. The agent renews it
	// long before.
	CertificateEnds time.Time `json:"certificateEnds,omitzero"`
}

// Refusal is what a proxy has refused last and is still to have.
type Refusal struct {
	At      time.Time `json:"at"`
	Objects []string  `json:"objects"` // what it is made of, as "HTTPRoute shop/web"
	Message string    `json:"message"` // of the proxy
	// ServingOld says that the last good version is in force.
	ServingOld bool `json:"servingOld"`
}

// State says in a word how a proxy is.
type State string

// The states, the worst first. Of several that are true the first counts.
const (
	Disconnected State = "Disconnected" // its pod is there, and no controller that was asked has a session
	Refused      State = "Refused"      // it refuses a part of its configuration
	Behind       State = "Behind"       // it has not answered the newest configuration for over a minute
	NotReady     State = "NotReady"     // no clients are sent to it
	LastGood     State = "LastGood"     // it goes on with a good version of what another proxy has refused
	Draining     State = "Draining"     // it is being stopped
	Updating     State = "Updating"     // it is being sent a change
	Current      State = "Current"      // it has the newest configuration
	Gone         State = "Gone"         // it was there while changes were watched
)

// IsWell reports whether there is nothing to do about a proxy.
func (s State) IsWell() bool { return s == Current || s == Updating || s == Draining || s == Gone }

// Of describes the proxies with sessions. named says what a refused resource of a Gateway is
// made of.
func Of(replica string, sessions []xds.SessionInfo, named func(gateway string, r xds.Rejected) []string) List {
	out := List{Replica: replica, Proxies: make([]Proxy, 0, len(sessions))}
	for i := range sessions {
		s := &sessions[i]
		p := Proxy{
			Gateway: s.Gateway, Pod: s.Pod, Replica: replica, Connected: s.Connected, Envoy: s.Envoy,
			Wanted: s.Wanted, Acknowledged: s.Acknowledged, LagSeconds: s.Lag.Seconds(), Lacks: s.Behind,
			CertificateEnds: s.CertificateEnds, Refusals: s.Refusals,
		}
		if r := s.Refuses; r != nil {
			p.Refused = &Refusal{At: r.At, Objects: named(s.Gateway, r.Rejected), Message: r.Message, ServingOld: r.ServingOld}
		}
		p.State = p.state()
		out.Proxies = append(out.Proxies, p)
	}
	return out
}

func (p *Proxy) state() State {
	switch {
	case p.Connected.IsZero() && !p.Draining:
		return Disconnected
	case p.Refused != nil:
		return Refused
	case p.Lacks != "":
		return Behind
	case p.Draining:
		return Draining
	case p.Ready != nil && !*p.Ready:
		return NotReady
	case p.LagSeconds > 0:
		return Updating
	case p.Wanted != p.Acknowledged && p.Refusals:
		return LastGood
	case p.Wanted != p.Acknowledged: // it has just connected, or something waits for something else
		return Updating
	default:
		return Current
	}
}

// Remark says in a sentence what is wrong with a proxy; empty where nothing is.
func (p *Proxy) Remark() string {
	switch {
	case p.State == Disconnected:
		return "no controller that was asked has a connection of this proxy; see the log of its pod"
	case p.Refused != nil:
		left := "nothing of it is in force"
		if p.Refused.ServingOld {
			left = "its last good version is in force"
		}
		return fmt.Sprintf("%s: %s; %s", strings.Join(p.Refused.Objects, ", "), p.Refused.Message, left)
	case p.State == LastGood:
		return "another proxy of the Gateway refuses what this one is without; see its row, or the Gateway's status"
	default:
		return p.Lacks
	}
}

// Same reports whether two rows of a proxy say the same. What only grows, the lag, and when it has refused the same
// again are of no account.
func (p *Proxy) Same(other *Proxy) bool {
	a := *p
	a.LagSeconds = other.LagSeconds
	if a.Refused != nil && other.Refused != nil {
		again := *a.Refused
		again.At, a.Refused = other.Refused.At, &again
	}
	return reflect.DeepEqual(&a, other)
}

// Pod is what is known of a proxy's process by whoever runs it.
type Pod struct {
	Gateway  string // namespace/name
	Name     string
	Node     string
	Zone     string
	Ready    bool
	Draining bool
}

// Join puts together what controllers say and the pods. A proxy that has just gone over to
// another controller has two sessions: the younger one counts.
func Join(lists []List, pods []Pod) []Proxy {
	type key struct{ gateway, pod string }
	all := map[key]Proxy{}
	for _, l := range lists {
		for _, p := range l.Proxies {
			k := key{p.Gateway, p.Pod}
			if before, ok := all[k]; !ok || before.Connected.Before(p.Connected) {
				all[k] = p
			}
		}
	}
	for _, pod := range pods {
		k := key{pod.Gateway, pod.Name}
		p := all[k]
		p.Gateway, p.Pod, p.Node, p.Zone, p.Ready, p.Draining = pod.Gateway, pod.Name, pod.Node, pod.Zone, &pod.Ready, pod.Draining
		p.State = p.state()
		all[k] = p
	}
	out := make([]Proxy, 0, len(all))
	for _, p := range all {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Proxy) int {
		return cmp.Or(strings.Compare(a.Gateway, b.Gateway), strings.Compare(a.Pod, b.Pod))
	})
	return out
}
