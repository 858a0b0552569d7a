package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// certificateOf is a certificate by a server name, whose body says what it is called.
func certificateOf(name, body string) *envoy.Resource {
	return resource(envoy.Secrets, name, string(protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), body)))
}

// A proxy gets a certificate by each spelling of its name, with every change, and its removal; and what doesn't
// exist is answered at once and leaves nothing.
func TestSpellings(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("www.test", "1"))...)
	p := h.connectAll()
	one := certificateOf("www.test", "1")
	p.subscribe(envoy.Secrets, "WWW.test", "*", "NOBODY.test")
	p.expect(set(one.Spelled("WWW.test")), "secret -* -NOBODY.test")
	p.unsubscribe(envoy.Secrets, "NOBODY.test")
	p.quiet()

	two := certificateOf("www.test", "2")
	h.apply(two)
	p.expect(set(two.Spelled("WWW.test")))
	p.subscribe(envoy.Secrets, "www.test")
	p.expect(set(two))
	h.apply("-secret/www.test")
	p.expect("secret -www.test", "secret -WWW.test")
	p.quiet()
}

// However many spellings clients make up, a proxy keeps the newest ones only, and is refused none.
func TestManySpellings(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("abcdefghij.test", "1"))...)
	p := h.connectAll()
	one := certificateOf("abcdefghij.test", "1")
	spell := func(n int) string { return spellingOf("abcdefghij.test", n) }
	for n := 1; n <= maxSpellings; n++ {
		p.subscribe(envoy.Secrets, spell(n))
		p.expect(set(one.Spelled(spell(n))))
	}
	for n := maxSpellings + 1; n < maxSpellings+50; n++ {
		oldest := spell(n - maxSpellings)
		p.subscribe(envoy.Secrets, spell(n))
		p.expect(set(one.Spelled(spell(n))), "secret -"+oldest)
		p.unsubscribe(envoy.Secrets, oldest)
	}
	p.subscribe(envoy.Secrets, spell(1)) // again
	p.expect(set(one.Spelled(spell(1))), "secret -"+spell(50))
	p.unsubscribe(envoy.Secrets, spell(50))
	waitFor(t, "the session to have only the newest", func() bool {
		for _, y := range h.server.Sessions()[0].Types {
			if y.Type == "secret" {
				return y.Resources == maxSpellings+1 // and s
			}
		}
		return false
	})
}

// Names that clients make up are answered however many there are, as after a time without a controller, and
// nothing is kept of them: they don't end the stream, and take no spelling of a host away.
func TestMadeUpNames(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("www.test", "1"))...)
	names := make([]string, 3*maxUnknownNames)
	for i := range names {
		names[i] = fmt.Sprintf("%0*d.TEST", 100, i)
	}
	p := h.connectAll()
	one := certificateOf("www.test", "1")
	p.subscribe(envoy.Secrets, "WWW.test")
	p.expect(set(one.Spelled("WWW.test")))
	p.subscribe(envoy.Secrets, append(names, "Www.test")...)
	p.expect(set(one.Spelled("Www.test")))
	if n := len(p.next().GetRemovedResources()); n != len(names) {
		t.Errorf("%d names are answered", n)
	}
	for _, y := range h.server.Sessions()[0].Types {
		if y.Type == "secret" && y.Resources != 3 { // and s
			t.Errorf("the session has %d secrets", y.Resources)
		}
	}
	p.unsubscribe(envoy.Secrets, names...)
	p.quiet()

	// And so many spellings of one that exists.
	host := strings.Repeat("abcdefghij", 10)
	h.apply(certificateOf(host, "1"))
	for i := range names {
		names[i] = spellingOf(host, i+1)
	}
	p.subscribe(envoy.Secrets, names...)
	for n := 0; ; n++ {
		m := p.next()
		p.ack(m)
		if removed := len(m.GetRemovedResources()); removed > 0 {
			if n != maxSpellings || removed != len(names)-maxSpellings+2 { // and those of www.test
				t.Errorf("%d spellings are sent, %d removed", n, removed)
			}
			break
		}
	}
	p.unsubscribe(envoy.Secrets, names...)
	p.quiet()
	if n := h.server.Sessions()[0].Unanswered; n != 0 {
		t.Errorf("%d responses without an answer", n)
	}
}

// spellingOf is one of a name's spellings.
func spellingOf(host string, n int) string {
	name := []byte(host)
	for bit := 0; n>>bit > 0; bit++ {
		if n>>bit&1 == 1 {
			name[bit] -= 'a' - 'A'
		}
	}
	return string(name)
}

// However often clients of a proxy that hasn't answered everything make up a spelling, its stream goes on.
func TestPassingSpellings(t *testing.T) {
	h := start(t)
	host := strings.Repeat("abcdefghij", 40)
	h.apply(append(small(), certificateOf(host, "1"))...)
	p := h.connectAll()
	h.apply(cluster("a", "2"), ends("a", "2"))
	p.expect("cluster +a=2 ?", "endpoints +a=2")
	for n := range 2 * maxSessionBytes / (len(host) + maxVersion) {
		name := spellingOf(host, n+1)
		p.subscribe(envoy.Secrets, name)
		p.ack(p.next())
		p.unsubscribe(envoy.Secrets, name)
	}
	p.quiet()
}

// A proxy that never answers may ask for what doesn't exist as often as it wants.
func TestDeniedNamesLeaveNothing(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	p.subscribe(envoy.Extensions, "none")
	p.expect("extension +none=empty")
	for i := range maxUnanswered { // from here on it gets nothing else
		h.apply(table("t", fmt.Sprint("x:", i+2)))
		p.expect(fmt.Sprintf("routes +t=[x:%d] ?", i+2))
	}
	before := h.server.Sessions()[0]
	for i := range 2000 {
		other := fmt.Sprint("ns/none-", i)
		p.subscribe(envoy.Secrets, "*", "made-up.test", other)
		p.unsubscribe(envoy.Secrets, other)
		p.subscribe(envoy.Routes, "*")
	}
	p.subscribe(envoy.Secrets, "last.test")
	for !slices.Contains(p.next().GetRemovedResources(), "last.test") {
	}
	if now := h.server.Sessions()[0]; now.Unanswered > before.Unanswered || now.Pending > before.Pending {
		t.Errorf("%d responses without an answer and %d names, before %d and %d", now.Unanswered, now.Pending, before.Unanswered, before.Pending)
	}
}

// The certificate of a host that goes is removed also where a proxy has it by another spelling only.
func TestSpellingGoesWithItsHost(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("www.test", "1"))...)
	p := h.connectAll()
	p.subscribe(envoy.Secrets, "WWW.test")
	p.expect(set(certificateOf("www.test", "1").Spelled("WWW.test")))
	h.apply("-secret/www.test")
	p.expect("secret -WWW.test")
	p.quiet()
}

// A certificate that a proxy refuses by another spelling is the host's: the client is answered, and the state says so.
func TestSpellingRefused(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("www.test", "1"))...)
	p := h.connectAll()
	p.subscribe(envoy.Secrets, "WWW.test")
	p.expect(set(certificateOf("www.test", "1").Spelled("WWW.test"))+" ! bad", "secret -WWW.test")
	h.state("www.test refused", rejects("secret/www.test"))
	p.unsubscribe(envoy.Secrets, "WWW.test")
	p.subscribe(envoy.Secrets, "www.test")
	p.expect("secret -www.test")
	p.quiet()
}

// A certificate that a proxy has by another spelling alone stays in force when the next one is refused.
func TestSpellingTaken(t *testing.T) {
	h := start(t)
	h.apply(append(small(), certificateOf("www.test", "1"))...)
	p := h.connectAll()
	p.subscribe(envoy.Secrets, "WWW.test")
	p.expect(set(certificateOf("www.test", "1").Spelled("WWW.test")))
	p.quiet()
	h.apply(certificateOf("www.test", "2"))
	p.expect(set(certificateOf("www.test", "2").Spelled("WWW.test")) + " ! bad")
	h.state("www.test refused, and the one from before in force", rejects("secret/www.test old"))
	p.subscribe(envoy.Secrets, "www.test")
	p.expect(set(certificateOf("www.test", "1")))
	p.quiet()
}

// set is the line of a response with a secret.
func set(r *envoy.Resource) string {
	return fmt.Sprintf("secret +%s=%s", r.Name, body(r.Type, r.Name, r.Body()))
}

// A scope for a server name goes also in a plan that changes the listener: connections that use it stay open.
// What a connection that drains uses stays.
func TestHostScopeGoesWithItsHost(t *testing.T) {
	h := start(t)
	scope := func(name string) *envoy.Resource { return resource(envoy.Scopes, name, "1") }
	h.apply(append(small(), scope("tls-443-a.test"), scope("http-80/7"))...)
	p := h.connectAll()
	p.subscribe(envoy.Scopes)
	p.expect("scope +http-80/7=1 +tls-443-a.test=1")
	p.subscribe(envoy.Extensions, "none")
	p.expect("extension +none=empty")
	h.apply(listener("l", "2"), "-scope/tls-443-a.test", "-scope/http-80/7")
	p.expect("listener +l=2", "scope -tls-443-a.test")
	p.quiet()
}
