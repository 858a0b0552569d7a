package xds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

func rejects(refs ...string) func(State) bool {
	return func(s State) bool {
		if len(s.Rejected) != len(refs) {
			return false
		}
		for i, r := range s.Rejected {
			got := r.Ref.String()
			if r.Part != "" {
				got += "/" + r.Part
			}
			if r.ServingOld {
				got += " old"
			}
			if got != refs[i] {
				return false
			}
		}
		return true
	}
}

// Envoy names the clusters that it refuses: the others of the change are in force, a proxy
// that connects later gets the last good version, and a change ends the quarantine.
func TestRefusedClustersAreNamed(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("a", "bad"), cluster("b", "2"), cluster("c", "bad"), cluster("d", "1"))
	p.expect("cluster +a=bad +b=2 +c=bad +d=1 ! Error adding/updating cluster(s) a: it's, b: that, c: and: more",
		"endpoints +a=1", "endpoints +b=1")
	// b is not among the named ones of the message… but it reads so: it costs
	// b a round, no more.
	s := h.state("a, b and c refused", rejects("cluster/a old", "cluster/b old", "cluster/c"))
	for i, want := range []string{"it's", "that", "and: more"} {
		if s.Rejected[i].Message != want {
			t.Errorf("message %q, want %q", s.Rejected[i].Message, want)
		}
	}
	// The last good versions, or removals, take the place of the refused ones:
	// see TestEnvoyHoldsBackAnswers.
	p.expect("cluster +a=1 +b=1 +d=1 -c", "endpoints +a=1", "endpoints +b=1")
	p.quiet()
	var said []string
	for _, f := range h.server.Fallbacks(func(gateway string, r Rejected) []string { return []string{gateway + " " + r.Name} }) {
		if f.Since.IsZero() || f.Gateway != f.Objects[0][:len(f.Gateway)] {
			t.Errorf("%+v", f)
		}
		said = append(said, f.Type+" "+f.Name+": "+f.Instead+" "+f.Message)
	}
	if diff := cmp.Diff([]string{"cluster a: last good it's", "cluster b: last good that", "cluster c: nothing and: more"}, said); diff != "" {
		t.Error(diff)
	}

	late := h.connect()
	late.subscribe(envoy.Clusters)
	late.expect("cluster +a=1 +b=1 +d=1 +dns=1")
	late.subscribe(envoy.Endpoints, "a", "b", "d")
	late.expect("endpoints +a=1", "endpoints +b=1", "endpoints +d=empty")

	h.apply(cluster("a", "3"), cluster("b", "3"), cluster("c", "3"))
	p.expect("cluster +a=3 +b=3 +c=3", "endpoints +a=1", "endpoints +b=1")
	h.state("healed", rejects())
	if left := h.server.Fallbacks(nil); len(left) > 0 {
		t.Errorf("healed: %+v", left)
	}
}

func TestRefusedListener(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(listener("l", "bad"), listener("m", "bad"), listener("n", "1"))
	p.expect("listener +l=bad +m=bad +n=1 ! Error adding/updating listener(s) l: no\nm: neither\n", "listener +l=1 +n=1")
	s := h.state("l and m refused", rejects("listener/l old", "listener/m"))
	if s.Listeners["l"] != listener("l", "1").Version || s.Rejected[1].Message != "neither" {
		t.Errorf("%+v", s)
	}
	h.apply(listener("l", "1"), "-listener/m")
	h.state("healed", rejects())
	p.quiet()
}

// A refusal without names refuses the whole response: each resource is then sent alone,
// which shows the one at fault.
func TestRefusedWithoutNames(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("a", "2"), cluster("b", "bad"), cluster("c", "1"), ends("c", "1"))
	p.expect("cluster +a=2 +b=bad +c=1 ! Proto constraint validation failed",
		"endpoints +a=1", "endpoints +b=1", "endpoints +c=1",
		"cluster +a=2", "cluster +b=bad ! Proto constraint validation failed", "cluster +c=1",
		"endpoints +a=1", "endpoints +b=1", "endpoints +c=1",
		"cluster +b=1", "endpoints +b=1")
	h.state("b refused", rejects("cluster/b old"))
	p.quiet()
}

// Endpoints, secrets and tables have a response each. A subscription is answered also while
// the only version is refused.
func TestRefusedAlone(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(ends("a", "bad"), secret("s", "bad"))
	p.expect("endpoints +a=bad ! malformed IP address", "secret +s=bad ! KEY_VALUES_MISMATCH")
	h.state("both refused", rejects("endpoints/a old", "secret/s old"))
	p.quiet()
	h.apply(cluster("n", "1"), ends("n", "bad"), secret("n", "bad"))
	p.expect("cluster +n=1", "endpoints +n=bad ! malformed IP address")
	p.subscribe(envoy.Endpoints, "n")
	p.expect("endpoints +n=empty")
	p.subscribe(envoy.Secrets, "n")
	p.expect("secret +n=bad ! no PEM", "secret -n")
	h.state("four refused", rejects("endpoints/a old", "endpoints/n", "secret/n", "secret/s old"))
	h.apply(ends("a", "2"), ends("n", "2"), secret("s", "2"), secret("n", "2"))
	p.expect("endpoints +a=2", "endpoints +n=2", "secret +n=2", "secret +s=2")
	h.state("healed", rejects())
	p.quiet()
}

// One bad host of a table costs only itself, and the rest of the same change is in force
// after the first answer.
func TestRefusedHost(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:bad", "y:1", "z:1"))
	p.expect(
		"routes +t=[x:bad y:1 z:1] ! missing ): ((",
		// Both that have changed are suspects. z is new: 500 for a moment.
		"routes +t=[x:1 y:1 z:500]",
		"routes +t=[x:bad y:1 z:500] ! missing ): ((",
		"routes +t=[x:1 y:1 z:1]",
	)
	s := h.state("x refused", rejects("routes/t/x old"))
	if r := s.Rejected[0]; r.Message != "missing ): ((" || r.Version != table("", "x:bad").Parts()[0].Hash.String() {
		t.Errorf("%+v", r)
	}
	p.quiet()
	// Other hosts change as ever; so does the bad one.
	h.apply(table("t", "x:bad", "y:2", "z:1"))
	p.expect("routes +t=[x:1 y:2 z:1]")
	h.apply(table("t", "x:worse", "y:3", "z:1"))
	p.expect(
		"routes +t=[x:worse y:3 z:1] ! worse",
		// Without the two, the table is as it is in force.
		"routes +t=[x:worse y:2 z:1] ! worse",
		"routes +t=[x:1 y:3 z:1]",
	)
	h.state("x refused still", func(s State) bool { return rejects("routes/t/x old")(s) && s.Rejected[0].Message == "worse" })
	h.apply(table("t", "x:3", "y:3", "z:1"))
	p.expect("routes +t=[x:3 y:3 z:1]")
	h.state("healed", rejects())
	p.quiet()
}

// A table that is new to the proxy has no last good version: a bad host answers 500, and is
// not searched again with the next proxy.
func TestRefusedHostOfANewTable(t *testing.T) {
	h := start(t)
	h.apply(table("t", "x:1", "y:bad"))
	p := h.connect()
	p.subscribe(envoy.Routes, "t")
	p.expect(
		"routes +t=[x:1 y:bad] ! no",
		"routes +t=[x:500 y:500]",
		"routes +t=[x:1 y:500]",
	)
	h.state("y refused", rejects("routes/t/y"))
	late := h.connect()
	late.subscribe(envoy.Routes, "t")
	late.expect("routes +t=[x:1 y:500]")
	h.apply(table("t", "x:1", "y:bad", "z:1"))
	p.expect("routes +t=[x:1 y:500 z:1]")
	h.apply(table("t", "x:1"))
	p.expect("routes +t=[x:1]")
	h.state("healed", rejects())
}

// The table's own fields may be at fault: the table in force stays as it is.
func TestRefusedTable(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	bad := envoy.NewComposite(envoy.Routes, "t", []byte("table bad "), table("", "x:2", "y:1").Parts())
	h.apply(bad)
	p.expect("routes +t=[bad x:2 y:1] ! no", "routes +t=[bad x:1 y:1] ! no")
	h.state("t refused", rejects("routes/t old"))
	p.quiet()
	h.apply(table("t", "x:2", "y:1"))
	p.expect("routes +t=[x:2 y:1]")
	h.state("healed", rejects())
}

// While an old table is in force, nothing that it may use is removed, also not from proxies
// that connect later. What is newer than the table is removed.
func TestRemovalWaitsForQuarantine(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:bad", "y:2"), "-cluster/a", "-endpoints/a", "-secret/s")
	p.expect(
		"routes +t=[x:bad y:2] ! no",
		"routes +t=[x:bad y:1] ! no",
		"routes +t=[x:1 y:2]",
	)
	h.state("x refused", rejects("routes/t/x old"))
	p.quiet()

	late := h.connect()
	late.subscribe(envoy.Clusters)
	late.expect("cluster +a=1 +b=1 +dns=1")
	late.subscribe(envoy.Endpoints, "a", "b")
	late.expect("endpoints +a=1", "endpoints +b=1")
	late.cancel()

	h.apply(cluster("new", "1"), ends("new", "1"))
	p.expect("cluster +new=1", "endpoints +new=1")
	h.apply("-cluster/new", "-endpoints/new")
	p.expect("cluster -new")
	p.quiet()

	h.apply(table("t", "x:3", "y:2"))
	p.expect("routes +t=[x:3 y:2] ?")
	p.quiet()
	p.answer()
	p.expect("cluster -a", "secret -s")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
}

const taken = "Error adding/updating listener(s) l: cannot bind '127.0.0.1:80': Address already in use"

// The socket of a listener that has been removed is closed a little later: that is not
// reported as a rejection.
func TestBindIsRetriedAtOnce(t *testing.T) {
	h := start(t, func(o *Options) { o.BindRetry = time.Millisecond })
	h.server.bindReport = time.Hour
	h.apply(listener("l", "1"))
	p := h.connect()
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1 ! "+taken, "listener +l=1 ! "+taken, "listener +l=1")
	h.state("bound", func(s State) bool {
		if len(s.Rejected) > 0 || s.Synced && s.Listeners["l"] == "" {
			t.Errorf("reported: %+v", s)
		}
		return s.Synced
	})
	p.quiet()
}

// A port that is taken is reported, and may become free.
func TestBindIsRetried(t *testing.T) {
	h := start(t, func(o *Options) { o.BindRetry = 10 * time.Millisecond })
	h.server.bindReport = 30 * time.Millisecond
	h.apply(listener("l", "1"))
	p := h.connect()
	p.subscribe(envoy.Listeners)
	refused := func(s State) bool { return rejects("listener/l")(s) && s.Synced }
	for info, _ := h.server.Gateway(gw); !refused(info.State); info, _ = h.server.Gateway(gw) {
		p.expect("listener +l=1 ! " + taken) // there is always another try
	}
	h.state("l refused", refused)
	p.expect("listener +l=1")
	h.state("healed", func(s State) bool { return rejects()(s) && s.Listeners["l"] != "" })
	p.quiet()
}

// A port that is taken where one proxy runs is reported, though another proxy has it.
func TestBindFailsForOneProxy(t *testing.T) {
	h := start(t, func(o *Options) { o.BindRetry = 10 * time.Millisecond })
	h.server.bindReport = 30 * time.Millisecond
	h.apply(small()...)
	p, q := h.connectAll(), h.connectAll()
	h.apply(listener("m", "1"))
	p.expect("listener +m=1")
	refused, tries := rejects("listener/m"), 0
	for info, _ := h.server.Gateway(gw); !refused(info.State); info, _ = h.server.Gateway(gw) {
		q.expect("listener +m=1 ! " + taken)
		if tries++; tries > 20 {
			t.Fatalf("the refusal is not reported, and tried again without end: %+v", info.State)
		}
	}
	p.quiet()
	q.expect("listener +m=1")
	h.state("healed", rejects())
}

// What one proxy refuses stays with another that has accepted it.
func TestProxiesThatDisagree(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p, q := h.connectAll(), h.connectAll()
	h.apply(listener("l", "2"))
	p.expect("listener +l=2")
	p.quiet()
	q.expect("listener +l=2 ! no")
	h.state("l refused", rejects("listener/l"))
	p.quiet()
	q.quiet()
	h.apply(listener("l", "3"))
	p.expect("listener +l=3")
	q.expect("listener +l=3")
	h.state("healed", rejects())
}

// A proxy's message may have keys in it, and any length.
func TestMessagesAreCleaned(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nMIIEsecret\n-----END PRIVATE KEY-----"
	got := clean("dump: " + key + " and " + key + strings.Repeat("é", 2000) + "\xff")
	if strings.Contains(got, "MIIE") || len(got) > maxMessage || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := clean("-----BEGIN RSA PRIVATE KEY-----\\nMIIEsecret"); got != "[redacted]" {
		t.Error(got)
	}
	if got := clean("a\x1b]0;title\x07b\u202ec\r\nd\u2028\x9be"); got != "a?]0;title?b?c  d ?e" {
		t.Errorf("%q", got)
	}
	if got := bounded("node\x1b[2J" + strings.Repeat("x", 1000)); strings.Contains(got, "\x1b") || len(got) > 300 {
		t.Errorf("%q", got)
	}
	h := start(t)
	h.apply(secret("s", "bad"))
	p := h.connect()
	p.subscribe(envoy.Secrets, "s")
	p.expect("secret +s=bad ! "+key, "secret -s")
	h.state("without the key", func(s State) bool { return rejects("secret/s")(s) && s.Rejected[0].Message == "[redacted]" })
	if i := h.server.Sessions(); strings.Contains(fmt.Sprint(i[0].Types[0].LastNack), "MIIE") {
		t.Error("the session shows a key")
	}
}

func TestBlame(t *testing.T) {
	set := []*envoy.Resource{
		cluster("a", ""), cluster("b.a", ""), cluster("c: d", ""), cluster("ns/x, y", ""), cluster("é", ""),
	}
	for message, want := range map[string]string{
		"Error adding/updating cluster(s) a: x":                     "a",
		"Error adding/updating cluster(s) b.a: x":                   "b.a",
		"Error adding/updating cluster(s) c: d: x, ns/x, y: z":      "c: d ns/x, y",
		"Error adding/updating cluster(s) é: not a: x, and b.a: y":  "é",
		"Error adding/updating cluster(s) stranger: x":              "",
		"Error adding/updating listener(s) a: x":                    "",
		"Proto constraint validation failed (Cluster.a: x, b.a: y)": "",
		"": "",
	} {
		found := culpritsOf(resourceTypes()[envoy.Clusters].atFault, set, message)
		var got []string
		for _, r := range set {
			if _, ok := found[r.Name]; ok {
				got = append(got, r.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q blames %v, want %s", message, got, want)
		}
	}
}

// A table that becomes spare while a proxy is about to refuse it is in quarantine all the same.
func TestRefusalOfWhatHasBecomeSpare(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:2"))
	p.expect("routes +t=[x:2] ?")
	h.apply(table("t", "x:2").Sparing(true))
	p.quiet()
	p.nack(p.pending[0], "bad x")
	p.expect("routes +t=[x:1]")
	p.quiet()
}

// A proxy that refuses all versions that it has been sent, of which the second came before its answer to the first,
// has none of them, and is told what to go on with.
func TestRefusedTwiceAtOnce(t *testing.T) {
	h := start(t)
	h.apply(listener("l", "1"), cluster("c", "bad"), resource(envoy.Extensions, "x", "bad"))
	p := h.connect()
	p.subscribe(envoy.Clusters)
	first := []*discoveryv3.DeltaDiscoveryResponse{p.next()}
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1")
	p.subscribe(envoy.Extensions, "x")
	first = append(first, p.next())
	h.apply(cluster("c", "worse"))
	second := []*discoveryv3.DeltaDiscoveryResponse{p.next()}
	h.apply(resource(envoy.Extensions, "x", "worse"))
	second = append(second, p.next())
	for _, m := range append(first, second...) {
		p.nack(m, "Error adding/updating cluster(s) c: no")
	}
	got := map[string]bool{}
	for range 2 {
		m := p.next()
		got[fmt.Sprintf("-%v", m.RemovedResources)] = true
		for _, r := range m.Resources {
			got["+"+r.Name] = r.Version == envoy.EmptyExtension("x").Version
		}
		p.ack(m)
	}
	if !got["-[c]"] || !got["+x"] {
		t.Errorf("the proxy is sent %v, want the removal of the cluster and an extension that is empty", got)
	}
	p.quiet()
}

// What a proxy refuses is told of the resource alone, also while it may still be mended by another try: the rest of
// Envoy's text names other resources, as Envoy knows them.
func TestRefusalOfOneListener(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(listener("l", "bad"), listener("m", "bad"))
	p.expect("listener +l=bad +m=bad ! Error adding/updating listener(s) l: cannot bind '0.0.0.0:80'\nm: cannot bind '0.0.0.0:81'")
	s := h.server.Sessions()[0]
	for end := time.Now().Add(patience); s.Refuses == nil; s = h.server.Sessions()[0] { // no state tells of what may pass
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			t.Fatal("nothing is refused")
		}
	}
	if want := map[string]string{"l": "cannot bind '0.0.0.0:80'", "m": "cannot bind '0.0.0.0:81'"}[s.Refuses.Name]; s.Refuses.Message != want || !s.Refusals {
		t.Errorf("%s: message %q, want %q", s.Refuses.Name, s.Refuses.Message, want)
	}
}
