package xds

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// dividedWorld serves a table in shards, in front of which a listener may say who may pass. The host
// "own" says itself that nobody may, "free" that everybody may, and "inner" has a rule of that kind.
type dividedWorld struct{ *world }

func startDivided(t *testing.T, around *ir.Access) dividedWorld {
	t.Helper()
	w := dividedWorld{realWorld(t)}
	l, errs := envoy.Listener("http", &ir.Listener{
		Name: "http", Port: w.port, BindPort: w.port, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: "t", Sharded: true}},
	})
	all := append(w.destination("h000"), must(t, l, errs...))
	for shard := range envoy.Shards {
		all = append(all, envoy.Scope("t", uint8(shard)))
	}
	all = append(all, w.shards(around)...)
	if around != nil {
		all = append(all, w.access(around))
	}
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })
	return w
}

// access is what stands beside the shards.
func (w dividedWorld) access(who *ir.Access) *envoy.Resource {
	r, err := envoy.TableAccess("t", who)
	return must(w.t, r, err)
}

// shards are all that a table is divided into.
func (w dividedWorld) shards(around *ir.Access) (out []any) {
	var f *ir.Filters
	if around != nil {
		f = &ir.Filters{Access: around}
	}
	rule := func(path string, who *ir.Access) *ir.Rule {
		return &ir.Rule{
			Source:   ir.Source{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: "r"}},
			Match:    ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: path}},
			Backends: []ir.WeightedBackend{{Backend: ir.NamedBackend("h000"), Weight: 1}},
			Filters:  ir.Filters{Access: who},
		}
	}
	hosts := []*ir.Host{
		{Domain: "plain", Rules: []*ir.Rule{rule("/", nil)}},
		{Domain: "cookies", Sessions: true, Rules: []*ir.Rule{rule("/", nil)}},
		{Domain: "own", Rules: []*ir.Rule{rule("/", nil)}, Filters: &ir.Filters{Access: nobody}},
		{Domain: "free", Rules: []*ir.Rule{rule("/", nil)}, Filters: &ir.Filters{Access: &ir.Access{}}},
		{Domain: "other", Rules: []*ir.Rule{rule("/", nil)}, Filters: &ir.Filters{Access: everybody}},
		{Domain: "inner", Rules: []*ir.Rule{rule("/", everybody)}},
		{Domain: "innerfree", Rules: []*ir.Rule{rule("/", &ir.Access{})}},
		{Domain: "deep", Rules: []*ir.Rule{rule("/", everybody)}, Filters: &ir.Filters{Access: &ir.Access{}}},
		{Domain: "deeper", Rules: []*ir.Rule{rule("/", nobody)}, Filters: &ir.Filters{Access: &ir.Access{}}},
	}
	var parts [envoy.Shards][]*envoy.Part
	for _, h := range hosts {
		h.Around = f
		if around != nil {
			h.Divided = "t"
		}
		p, errs := envoy.HostPart(h)
		for _, err := range errs {
			w.t.Fatal(err)
		}
		parts[envoy.ShardOf(h.Domain)] = append(parts[envoy.ShardOf(h.Domain)], p)
	}
	for shard, hosts := range parts {
		r, err := envoy.BundledRouteTable(envoy.ShardName("t", uint8(shard)), envoy.AroundShards("t", f, false), []*envoy.Bundle{envoy.NewBundle(hosts)})
		out = append(out, must(w.t, r, err))
	}
	return out
}

// answer checks what hosts answer, all those that are not told of as without a guard in front.
func (w dividedWorld) answer(plain string) {
	w.t.Helper()
	for host, want := range map[string]string{
		"plain": plain, "cookies": plain, "own": "403", "free": "/", "other": "/", "inner": "/", "innerfree": "/", "deep": "/", "deeper": "403",
	} {
		if got := w.get(host); got != want {
			w.t.Errorf("%s answers %s, want %s", host, got, want)
		}
	}
}

// Who may pass by a divided table comes by one resource. Where it is missing or refused nobody
// passes but those of whom a level inside says so.
func TestEnvoyAsksBesideShards(t *testing.T) {
	w := startDivided(t, everybody)
	w.serves("plain", "/")
	w.answer("/")
	w.apply(w.access(nobody))
	w.serves("plain", "403")
	w.answer("403")
	w.apply(w.access(everybody))
	w.serves("plain", "/")
	w.apply("-extension/gatehouse.access/t")
	w.serves("plain", "403")
	w.answer("403")
	w.apply(w.access(everybody))
	w.serves("plain", "/")
	w.answer("/")
	broken := envoy.NewResource(envoy.Extensions, envoy.TableAccessFilter("t"), marshal(&corev3.TypedExtensionConfig{
		Name: envoy.TableAccessFilter("t"), TypedConfig: packed(t, &filterchainv3.FilterChainConfig{DefaultFilterChain: &filterchainv3.FilterChain{
			Filters: []*corev3.TypedExtensionConfig{{Name: "headers", TypedConfig: packed(t, &luav3.Lua{
				DefaultSourceCode: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "this is no Lua"}},
			})}},
		}}),
	})).Guarded(guardBy("b"))
	w.apply(broken)
	w.state("refused", func(s State) bool { return len(s.Rejected) == 1 && !s.Rejected[0].ServingOld })
	w.serves("plain", "403")
	w.answer("403")
	w.apply(w.access(everybody))
	w.serves("plain", "/")
	w.state("healed", rejects())
	w.answer("/")
}

// An older connection manager has no filter for what stands beside the shards: nobody passes by it.
func TestEnvoyAsksNobodyWithoutTheFilter(t *testing.T) {
	w := startDivided(t, everybody)
	w.serves("plain", "/")
	shard, _ := w.shards(everybody)[envoy.ShardOf("plain")].(*envoy.Resource)
	r, err := envoy.BundledRouteTable("t", envoy.AroundShards("t", &ir.Filters{Access: everybody}, false), []*envoy.Bundle{envoy.NewBundle(shard.Parts())})
	w.apply(w.httpListener("http", w.port), must(t, r, err))
	w.serves("plain", "403")
}

// No request passes by a mixture of two versions, neither of which lets it pass.
func TestEnvoyAsksBesideShardsThroughEdits(t *testing.T) {
	w := startDivided(t, nil)
	w.serves("plain", "/")
	var passed, asked atomic.Int64
	hold := func(edit func()) {
		t.Helper()
		stop := crowd(func() {
			asked.Add(1)
			if w.get("plain") == "/" {
				passed.Add(1)
			}
		})
		edit()
		stop()
	}
	elsewhere := func(n byte) *ir.Access {
		return &ir.Access{Conditions: []ir.AccessCondition{{Name: "elsewhere", Allow: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 32)}}}}
	}
	for range 20 {
		// It comes into being, for shards one after another.
		w.apply(append(slices.Clip(w.shards(nobody)), w.access(nobody))...)
		w.serves("plain", "403")
		hold(func() {
			for i := range byte(10) {
				w.apply(w.access(elsewhere(i)))
			}
			w.apply(w.access(nobody))
			w.serves("plain", "403")
			w.apply("-extension/gatehouse.access/t")
			w.serves("plain", "403")
			w.apply(w.access(nobody))
			w.serves("plain", "403")
		})
		if n := passed.Load(); n > 0 {
			t.Fatalf("%d of %d requests have passed", n, asked.Load())
		}
		// And goes.
		w.apply(append(slices.Clip(w.shards(nil)), "-extension/gatehouse.access/t")...)
		w.serves("plain", "/")
	}
	t.Logf("%d requests", asked.Load())
}
