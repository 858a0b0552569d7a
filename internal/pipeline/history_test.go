package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// past is a pipeline with the objects that it has, and what its proxies have been sent. The numbers above which
// ports and tables have another form are so small that few objects reach them.
type past struct {
	*Pipeline
	t       *rapid.T
	now     time.Time
	objects map[object.Key]source.Object
	uids    map[object.Key]int
	sent    map[xds.Ref]*envoy.Resource
	// former are listeners that connections may use still, and owing says that a proxy goes on with one.
	former []formerListener
	names  map[xds.Ref]map[string]bool // by the name of a listener, those that it serves
	owing  bool
}

type formerListener struct {
	*envoy.Resource
	until time.Time
	names map[string]bool // the server names by which there may be connections
}

// drains is what connections have after a change of their listener.
const drains = 10 * time.Minute

var theGateway = object.Name{Namespace: "default", Name: "edge"}

func newPast(t *rapid.T) *past {
	options := standalone
	options.Topology.Experimental, options.Topology.SharedHost, options.Topology.DefaultAddresses = true, true, options.Addresses
	p := &past{
		Pipeline: New(options), t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		objects: map[object.Key]source.Object{}, uids: map[object.Key]int{}, sent: map[xds.Ref]*envoy.Resource{}, names: map[xds.Ref]map[string]bool{},
	}
	p.transact(func(tx *flow.Tx) { p.Tick(tx, p.now) })
	return p
}

func (p *past) transact(change func(*flow.Tx)) {
	c := p.Update(change)
	for _, f := range c.Failures {
		p.t.Fatalf("%v\n%s", f, f.Stack)
	}
	for _, u := range p.Updates(c) {
		if u.Gone {
			clear(p.sent)
			p.former = nil
		}
		for _, ref := range u.Remove {
			p.replaced(ref)
			delete(p.sent, ref)
		}
		for _, r := range u.Set {
			ref := xds.Ref{Type: r.Type, Name: r.Name}
			p.replaced(ref)
			p.sent[ref] = r
		}
	}
}

// replaced notes that another version of a listener is sent, or its removal.
func (p *past) replaced(ref xds.Ref) {
	if was := p.sent[ref]; ref.Type == envoy.Listeners && was != nil {
		p.former = append(p.former, formerListener{was, p.now.Add(drains), p.names[ref]})
		delete(p.names, ref)
	}
}

func (p *past) take(b source.Batch) {
	p.transact(func(tx *flow.Tx) {
		p.Tick(tx, p.now)
		p.Take(tx, []source.Batch{b})
	})
}

// pass lets time pass, and all that lags behind.
func (p *past) pass(d time.Duration) {
	if p.owing {
		for i := range p.former {
			p.former[i].until = p.now.Add(d).Add(drains)
		}
	}
	p.now = p.now.Add(d)
	p.former = slices.DeleteFunc(p.former, func(f formerListener) bool { return p.now.After(f.until) })
	p.take(source.Batch{})
}

// settle lets all connections drain.
func (p *past) settle() {
	for range 3 {
		p.pass(0)
	}
	p.pass(drained)
	p.pass(0)
}

var (
	pastHostnames = []string{"a.test", "b.test", "c.test", "x.w.test", "y.w.test", "*.w.test", "*.test", ""}
	pastPairs     = func() (out []*certs.Certificate) {
		for _, n := range pastHostnames[:7] {
			out = append(out, certs.For(n))
		}
		return out
	}()
	pastAuthority = certs.Authority("clients")
	pastSecrets   = []string{"one", "two", "three"}
)

func pastSecret(name string, pair *certs.Certificate) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: named(name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.PEM(), corev1.TLSPrivateKeyKey: pair.KeyPEM()},
	}
}

// onEdge has a Gateway take ListenerSets and the settings.
func onEdge(gw *gwv1.Gateway) {
	gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: new(gwv1.NamespacesFromAll)}}
	gw.Spec.Infrastructure = &gwv1.GatewayInfrastructure{ParametersRef: &gwv1.LocalParametersReference{Group: "gatehouse.dev", Kind: "GatewayParameters", Name: "settings"}}
}

func https(name string, port gwv1.PortNumber, hostname, secret string) gwv1.Listener {
	return gwv1.Listener{
		Name: gwv1.SectionName(name), Port: port, Protocol: gwv1.HTTPSProtocolType, Hostname: new(gwv1.Hostname(hostname)),
		TLS:           &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(secret)}}},
		AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}},
	}
}

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func drawListeners(t *rapid.T, most int) (out []gwv1.Listener) {
	for i := range rapid.IntRange(0, most).Draw(t, "listeners") {
		l := gwv1.Listener{Name: gwv1.SectionName(fmt.Sprint("l", i))}
		l.Port = gwv1.PortNumber(pick(t, "port", 443, 443, 443, 8443, 80)) //nolint:gosec // one of these
		if l.Protocol = gwv1.HTTPSProtocolType; l.Port == 80 {
			l.Protocol = gwv1.HTTPProtocolType
		} else if rapid.IntRange(0, 9).Draw(t, "passes through") == 0 {
			l.Protocol, l.TLS = gwv1.TLSProtocolType, &gwv1.ListenerTLSConfig{Mode: new(gwv1.TLSModePassthrough)}
		}
		// Most are exact, since one with a wildcard ends a form.
		name := pick(t, "hostname", slices.Concat(pastHostnames[:5], pastHostnames[:5], pastHostnames)...)
		if name != "" {
			l.Hostname = new(gwv1.Hostname(name))
		}
		if l.Protocol == gwv1.HTTPSProtocolType {
			l.TLS = &gwv1.ListenerTLSConfig{}
			for range pick(t, "certificates", 1, 1, 1, 1, 2) {
				l.TLS.CertificateRefs = append(l.TLS.CertificateRefs, gwv1.SecretObjectReference{Name: gwv1.ObjectName(pick(t, "secret", pastSecrets...))})
			}
			switch rapid.IntRange(0, 9).Draw(t, "options") {
			case 0:
				l.TLS.Options = map[gwv1.AnnotationKey]gwv1.AnnotationValue{"gatehouse.dev/min-tls-version": "1.3"}
			case 1:
				l.TLS.Options = map[gwv1.AnnotationKey]gwv1.AnnotationValue{"gatehouse.dev/http3": "true"}
			}
		}
		l.AllowedRoutes = &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}}
		out = append(out, l)
	}
	return out
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

// drawPast draws an object.
func drawPast(t *rapid.T) source.Object {
	switch what := rapid.IntRange(0, 19).Draw(t, "kind"); {
	case what < 2:
		gw := edgeGateway(drawListeners(t, 5)...)
		onEdge(gw)
		validation := &gwv1.FrontendTLSValidation{CACertificateRefs: []gwv1.ObjectReference{{Kind: "ConfigMap", Name: "clients"}}}
		switch rapid.IntRange(0, 4).Draw(t, "clients") {
		case 0:
			gw.Spec.TLS = &gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{Default: gwv1.TLSConfig{Validation: validation}}}
		case 1:
			gw.Spec.TLS = &gwv1.GatewayTLSConfig{Frontend: &gwv1.FrontendTLSConfig{PerPort: []gwv1.TLSPortConfig{{Port: 443, TLS: gwv1.TLSConfig{Validation: validation}}}}}
		}
		return gw
	case what < 9:
		set := &gwv1.ListenerSet{ObjectMeta: named(pick(t, "set", "s0", "s1", "s2", "s3", "s4", "s5"))}
		set.Spec.ParentRef.Name = "edge"
		for _, l := range drawListeners(t, 4) {
			set.Spec.Listeners = append(set.Spec.Listeners, gwv1.ListenerEntry(l))
		}
		return set
	case what < 11:
		secret := pastSecret(pick(t, "secret", pastSecrets...), pastPairs[rapid.IntRange(0, len(pastPairs)-1).Draw(t, "pair")])
		switch rapid.IntRange(0, 5).Draw(t, "damage") {
		case 0:
			secret.Data[corev1.TLSCertKey] = []byte("garbage")
		case 1:
			secret.Data[corev1.TLSPrivateKeyKey] = pastAuthority.KeyPEM()
		}
		return secret
	case what < 15:
		r := edgeRoute(pick(t, "route", "r0", "r1", "r2", "r3", "r4"))
		for range rapid.IntRange(0, 4).Draw(t, "hostnames") {
			if name := pick(t, "hostname", pastHostnames...); name != "" && !slices.Contains(r.Spec.Hostnames, gwv1.Hostname(name)) {
				r.Spec.Hostnames = append(r.Spec.Hostnames, gwv1.Hostname(name))
			}
		}
		if to := pick(t, "parent", "", "", "s1", "s2"); to != "" {
			r.Spec.ParentRefs = append(r.Spec.ParentRefs, gwv1.ParentReference{Kind: new(gwv1.Kind("ListenerSet")), Name: gwv1.ObjectName(to)})
		}
		return r
	case what < 17:
		at := []string{"Gateway", "edge"}
		if rapid.Bool().Draw(t, "of a route") {
			at = []string{"HTTPRoute", pick(t, "route", "r1", "r2")}
		}
		a := allows(pick(t, "policy", "p1", "p2"), at[0], at[1], rapid.IntRange(0, 2).Draw(t, "addresses"))
		if at[0] == "Gateway" && rapid.Bool().Draw(t, "of a listener") {
			a.Spec.TargetRefs[0].SectionName = new(gwv1.SectionName("l0"))
		}
		return a
	case what < 18:
		authority := &corev1.ConfigMap{ObjectMeta: named("clients"), Data: map[string]string{"ca.crt": string(pastAuthority.PEM())}}
		if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
			authority.Data["ca.crt"] = "garbage"
		}
		return authority
	default:
		p := &v1alpha1.GatewayParameters{ObjectMeta: named("settings")}
		p.Spec.Certificates = &v1alpha1.Certificates{OnDemandAbove: new(pick[int32](t, "on demand above", 0, 1, 1, 2, 3))}
		p.Spec.RouteTables = &v1alpha1.RouteTables{ShardAbove: new(pick[int32](t, "shards above", 0, 1, 1, 2, 3))}
		if rapid.IntRange(0, 4).Draw(t, "HTTP/3") == 0 {
			p.Spec.Client = &v1alpha1.Client{HTTP3: new(true)}
		}
		return p
	}
}

// begin sets a Gateway whose ports and tables are above the numbers.
func (p *past) begin() {
	above := new(pick[int32](p.t, "above", 1, 2, 3))
	settings := &v1alpha1.GatewayParameters{ObjectMeta: named("settings")}
	settings.Spec.Certificates, settings.Spec.RouteTables = &v1alpha1.Certificates{OnDemandAbove: above}, &v1alpha1.RouteTables{ShardAbove: above}
	gw := edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType})
	onEdge(gw)
	all := []source.Object{settings, gw}
	for i, host := range pastHostnames[:5] {
		set := &gwv1.ListenerSet{ObjectMeta: named(fmt.Sprint("s", i))}
		set.Spec.ParentRef.Name = "edge"
		for _, port := range []gwv1.PortNumber{443, 8443}[:1+i%2] {
			set.Spec.Listeners = append(set.Spec.Listeners, gwv1.ListenerEntry(https(fmt.Sprint("l", port), port, host, pastSecrets[i%3])))
		}
		all = append(all, set, edgeRoute(fmt.Sprint("r", i), gwv1.Hostname(host)))
	}
	for i, name := range pastSecrets {
		all = append(all, pastSecret(name, pastPairs[i]))
	}
	if rapid.IntRange(0, 3).Draw(p.t, "policy") == 0 {
		all = append(all, allows("p1", "Gateway", "edge", 0))
	}
	var b source.Batch
	for _, o := range all {
		p.set(&b, o)
	}
	p.take(b)
	p.pass(0)
}

// change draws a transaction.
func (p *past) change() {
	var b source.Batch
	touched := map[object.Key]bool{}
	for range rapid.IntRange(1, 3).Draw(p.t, "changes") {
		o := drawPast(p.t)
		k, _ := p.Inputs.KeyOf(o)
		if touched[k] {
			continue
		}
		touched[k] = true
		if rapid.IntRange(0, 4).Draw(p.t, "delete") == 0 {
			if p.objects[k] != nil {
				delete(p.objects, k)
				b.Deleted = append(b.Deleted, k)
			}
			continue
		}
		p.set(&b, o)
	}
	p.take(b)
}

// set adds an object to a batch, with what an API server adds.
func (p *past) set(b *source.Batch, o source.Object) {
	k, _ := p.Inputs.KeyOf(o)
	if was := p.objects[k]; was != nil {
		o.SetUID(was.GetUID())
		o.SetCreationTimestamp(was.GetCreationTimestamp())
	} else {
		n := len(p.uids) + 1
		p.uids[k] = n
		o.SetUID(types.UID(fmt.Sprint("uid-", n)))
		o.SetCreationTimestamp(metav1.Unix(int64(1_700_000_000+n/2), 0))
	}
	p.objects[k] = o
	b.Set = append(b.Set, o)
}

// feedback draws what proxies say.
func (p *past) feedback() {
	state := xds.State{Connected: 2, Synced: true, Listeners: map[string]string{}}
	switch rapid.IntRange(0, 3).Draw(p.t, "feedback") {
	case 0:
		state.Behind, state.BehindWhy = 1, "is slow"
	case 1:
		state.Rejected = []xds.Rejected{{Ref: xds.Ref{Type: envoy.Listeners, Name: "tls-443@127.0.0.1"}, Message: "no", ServingOld: true}}
	case 2:
		if name := pick(p.t, "table", slices.Sorted(maps.Keys(p.tables()))...); name != "" {
			state.OtherForms = map[string]bool{name: rapid.Bool().Draw(p.t, "divided")}
		}
	}
	p.owing = state.Behind > 0 || len(state.Rejected) > 0
	p.transact(func(tx *flow.Tx) { p.TakeFeedback(tx, theGateway, state) })
}

// tables are the names of all, and the empty one.
func (p *past) tables() map[string]bool {
	out := map[string]bool{"": true}
	p.Engine.View(func(c *flow.Ctx) {
		for k := range flow.All(c, p.RouteTables) {
			out[k.Table()] = true
		}
	})
	return out
}

// count counts what of the forms there is.
func (p *past) count(reached map[string]int) {
	add := func(what string, is bool) {
		if is {
			reached[what]++
		}
	}
	p.Engine.View(func(c *flow.Ctx) {
		for _, on := range flow.All(c, p.OnDemand) {
			add("ports on demand", on)
		}
		for range flow.All(c, p.demand.leaving) {
			add("ports that leave it", true)
		}
		for _, h := range flow.All(c, p.onDemandHosts) {
			on, _ := flow.Get(c, p.OnDemand, h.port)
			add("hosts with chains there", on && h.certificate.IsZero())
		}
		for _, form := range flow.All(c, p.Sharded) {
			add("divided tables", form == Divided)
		}
		for range flow.All(c, p.TableAccess) {
			add("policies beside tables", true)
		}
	})
}

// another returns a pipeline that is given all objects at once, with the certificates and settings that stand in
// for others, and with what else the present one has to remember since it depends on what was.
func (p *past) another(remember func(c *flow.Ctx, tx *flow.Tx, f *past), as func(source.Object) source.Object) *past {
	f := newPast(p.t)
	f.now, f.objects = p.now, p.objects
	f.transact(func(tx *flow.Tx) {
		p.Engine.View(func(c *flow.Ctx) {
			for k, v := range flow.All(c, p.Inputs.KeptCertificates) {
				f.Inputs.KeptCertificates.Set(tx, k, v)
			}
			for k, v := range flow.All(c, p.Inputs.Kept) {
				f.Inputs.Kept.Set(tx, k, v)
			}
			remember(c, tx, f)
		})
	})
	var b source.Batch
	for _, k := range slices.SortedFunc(maps.Keys(p.objects), object.Key.Compare) {
		b.Set = append(b.Set, as(p.objects[k]))
	}
	f.take(b)
	return f
}

// afresh returns a pipeline in which ports and tables have the form that they have here.
func (p *past) afresh() *past {
	f := p.another(func(c *flow.Ctx, tx *flow.Tx, f *past) {
		for k, form := range flow.All(c, p.Sharded) {
			if form == Divided {
				f.shards.were.Set(tx, k, struct{}{})
			}
		}
		for k, on := range flow.All(c, p.OnDemand) {
			if on {
				f.demand.were.Set(tx, k, struct{}{})
			}
		}
	}, func(o source.Object) source.Object { return o })
	f.settle()
	return f
}

// plain returns a pipeline in which all ports and tables have one form.
func (p *past) plain() *past {
	return p.another(func(*flow.Ctx, *flow.Tx, *past) {}, func(o source.Object) source.Object {
		if s, is := o.(*v1alpha1.GatewayParameters); is {
			s = s.DeepCopy()
			s.Spec.Certificates.OnDemandAbove, s.Spec.RouteTables.ShardAbove = new(int32(0)), new(int32(0))
			return s
		}
		return o
	})
}

// drawBeginning draws a pipeline at the beginning of a past.
func drawBeginning(t *rapid.T) *past {
	p := newPast(t)
	if rapid.IntRange(0, 9).Draw(t, "from nothing") < 9 {
		p.begin()
	}
	return p
}

// step draws what happens next: mostly, an object changes.
func (p *past) step() {
	switch rapid.IntRange(0, 9).Draw(p.t, "step") {
	case 0:
		p.pass(pick(p.t, "time", 0, time.Minute, drained))
	case 1:
		p.feedback()
	default:
		p.change()
	}
}

// printSent is what proxies have, in words.
func (p *past) printSent() map[string]string {
	out := map[string]string{}
	for ref, r := range p.sent {
		marks := "" // they tell objects of equal contents apart, and policies' are compared by what they carry
		if c := r.Carries(); c != nil {
			marks = fmt.Sprint(len(*c))
		}
		out[ref.String()] = fmt.Sprintf("%s spare=%t guard=%v waits=%v marks=%s %x", r.Version, r.Spare, r.Guard(), r.WaitsFor(), marks, envoy.Sum(r.Body()))
	}
	return out
}

// remembered is what of former forms is kept.
func (p *past) remembered() string {
	var out []string
	p.Engine.View(func(c *flow.Ctx) {
		for k := range flow.All(c, p.shards.were) {
			out = append(out, "was divided "+k.String())
		}
		for k, v := range flow.All(c, p.shards.settled) {
			out = append(out, fmt.Sprintf("settled %s %d", k, v))
		}
		for k := range flow.All(c, p.shards.claimed) {
			out = append(out, "claimed "+k.String())
		}
		for k := range flow.All(c, p.demand.were) {
			out = append(out, "was on demand "+k.String())
		}
		for k := range flow.All(c, p.demand.leaving) {
			out = append(out, "leaves "+k.String())
		}
	})
	for k := range p.shards.until {
		out = append(out, "until "+k.String())
	}
	for k := range p.demand.until {
		out = append(out, "until "+k.String())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestPastLeavesNoTrace protects the law that what was leaves no trace but what is meant to be remembered: which
// form ports and tables have within the slack, and certificates of before. After any past, and the time that
// connections take to drain, proxies have what a fresh process gives them.
func TestPastLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawBeginning(rt)
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			p.step()
		}
		p.transact(func(tx *flow.Tx) { p.TakeFeedback(tx, theGateway, xds.State{Connected: 1, Synced: true}) })
		p.settle()
		f := p.afresh()
		if d := gocmp.Diff(f.printSent(), p.printSent()); d != "" {
			rt.Fatalf("proxies have something else than of a fresh process (-fresh +running):\n%s", d)
		}
		if d := gocmp.Diff(f.remembered(), p.remembered()); d != "" {
			rt.Fatalf("something else is remembered (-fresh +running):\n%s", d)
		}
	})
}

// TestFormsServeAlike protects what clients get: whatever form ports and tables have, and also while they change, a
// server name leads to the same certificates and hosts.
func TestFormsServeAlike(t *testing.T) {
	reached := map[string]int{}
	defer func() {
		t.Log(reached)
		for _, what := range []string{"ports on demand", "ports that leave it", "hosts with chains there", "divided tables", "policies beside tables", "connections from before"} {
			if reached[what] == 0 && !t.Failed() {
				t.Errorf("no %s are drawn", what)
			}
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawBeginning(rt)
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			p.step()
			plain := p.plain()
			p.count(reached)
			for _, port := range []int{443, 8443} {
				for _, sni := range []string{"a.test", "b.test", "c.test", "x.w.test", "y.w.test", "z.w.test", "w.test", "other.test", "nowhere.invalid"} {
					want, got := plain.serves(port, sni), p.serves(port, sni)
					if d := gocmp.Diff(want, got); d != "" {
						rt.Fatalf("port %d, server name %s (-in one form +running):\n%s", port, sni, d)
					}
					ref := xds.Ref{Type: envoy.Listeners, Name: listenerOf(port)}
					if p.names[ref] == nil {
						p.names[ref] = map[string]bool{}
					}
					p.names[ref][sni] = p.names[ref][sni] || got != nil
					for _, f := range p.former {
						if want == nil || want.Hosts == nil || f.Name != listenerOf(port) || !f.names[sni] {
							continue
						}
						reached["connections from before"]++
						if got := p.servedBy(f.Resource, port, sni, true); got != nil && got.Hosts != nil && got.Hostname == want.Hostname {
							if d := gocmp.Diff(want.Hosts, got.Hosts); d != "" {
								rt.Fatalf("port %d, server name %s, by a connection from before (-in one form +running):\n%s", port, sni, d)
							}
						}
					}
				}
			}
		}
	})
}
