package xds

import (
	"fmt"
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
	spell := func(n int) string {
		name := []byte("abcdefghij.test")
		for bit := range 10 {
			if n>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		return string(name)
	}
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
