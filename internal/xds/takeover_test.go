package xds

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// access is what stands beside the shards of table t, and says who may pass.
func access(body, by string) *envoy.Resource {
	return resource(envoy.Extensions, envoy.TableAccessFilter("t"), body).Guarded(guardBy(by))
}

// A request that neither the configuration of before nor the new one lets pass doesn't pass in between: where a host
// decides from now on what was beside its shard, nobody passes by that until the shard has been sent.
func TestTakeover(t *testing.T) {
	h := start(t)
	h.apply(listener("l", "1"), access("1", "a"), table("t/5", "x:1", "y:1"), table("t/6", "z:1"), table("u/5", "a:1"))
	p := h.connect()
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1")
	p.subscribe(envoy.Extensions, "gatehouse.access/t")
	p.subscribe(envoy.Routes, "t/5", "t/6", "u/5")
	p.expect("extension +gatehouse.access/t=1", "routes +t/5=[x:1 y:1]", "routes +t/6=[z:1]", "routes +u/5=[a:1]")
	h.apply(access("2", "b"), table("t/5", "x:1@k", "y:1"))
	p.expect("extension +gatehouse.access/t=empty", "routes +t/5=[x:1@k y:1]", "extension +gatehouse.access/t=2")
	p.quiet()
	// What is left to it is left to the new one.
	h.apply(access("3", "c"), table("t/5", "x:1", "y:1"))
	p.expect("extension +gatehouse.access/t=3", "routes +t/5=[x:1 y:1]")
	// Nor does it matter what else changes, or elsewhere.
	h.apply(access("4", "d"), table("t/5", "x:1", "y:2"), table("u/5", "a:1@k"))
	p.expect("extension +gatehouse.access/t=4", "routes +t/5=[x:1 y:2]", "routes +u/5=[a:1@k]")
	// A host in front of one with a wildcard takes over from that.
	h.apply(table("t/6", "*.z:1", "z:1"))
	p.expect("routes +t/6=[*.z:1 z:1]")
	h.apply(access("5", "e"), table("t/6", "*.z:1", "a.z:1@k", "z:1"))
	p.expect("extension +gatehouse.access/t=empty", "routes +t/6=[*.z:1 a.z:1@k z:1]", "extension +gatehouse.access/t=5")
	p.quiet()
}

// The same goes for what has changed since a proxy was connected last, of which nobody knows whether it takes over.
func TestTakeoverWhileAway(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(listener("l", "1"), access("2", "b"), table("t/5", "x:1@k", "y:1"), table("t/6", "z:1"))
	p := h.connect()
	p.resume(envoy.Listeners, listener("l", "1"))
	p.resume(envoy.Extensions, access("1", "a"))
	p.resume(envoy.Routes, table("t/5", "x:1", "y:1"), table("t/6", "z:1"))
	p.expect("extension +gatehouse.access/t=empty", "routes +t/5=[x:1@k y:1]", "extension +gatehouse.access/t=2")
	p.quiet()
	h.apply(access("3", "c"), table("t/5", "x:2@k", "y:1"))
	p.expect("extension +gatehouse.access/t=3", "routes +t/5=[x:2@k y:1]")
	p.quiet()
}
