package envoy

import (
	"errors"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"

	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What tables equal is not put together anew.
func TestEqualAround(t *testing.T) {
	equaltest.Fields(t, Around{}, func(a, b Around) bool { return a.Equal(&b) }, equaltest.Other("err", errors.New("x")))
}

// A shard says the same whatever stands beside it, and that is all that changes.
func TestShardsDoNotSayWhoMayPass(t *testing.T) {
	var all []*Around
	var beside []*Resource
	for _, a := range []*ir.Access{
		{Hidden: []string{"x-user"}},
		{Conditions: []ir.AccessCondition{{Name: "nobody", Never: true}}},
		{Authenticated: true, Keys: []ir.APIKeys{apiKeys("k", map[string]string{"alice": "one"})}},
	} {
		all = append(all, AroundShards("t", &ir.Filters{Access: a}, false))
		r, err := TableAccess("t", a)
		if err != nil {
			t.Fatal(err)
		}
		beside = append(beside, r)
		chain := &filterchainv3.FilterChainConfig{}
		if err := decode(t, r, &corev3.TypedExtensionConfig{}).TypedConfig.UnmarshalTo(chain); err != nil {
			t.Fatal(err)
		}
		if filters := chain.DefaultFilterChain.Filters; filters[0].Name != accessArrived || len(filters) < 2 {
			t.Errorf("the chain is %v", filters)
		}
	}
	for i := range all[1:] {
		if !all[0].Equal(all[i+1]) {
			t.Errorf("shards depend on %v", beside[i+1])
		}
		if beside[i].Equal(beside[i+1]) || slices.Equal(beside[i].Guard(), beside[i+1].Guard()) || len(beside[i].Guard()) == 0 {
			t.Errorf("two policies are one resource")
		}
	}
	for what, f := range map[string]*ir.Filters{"none": nil, "open": {Access: &ir.Access{}}} {
		if !AroundShards("t", f, false).Equal(AroundTables(f, false)) || AroundShards("t", f, false).Equal(all[0]) {
			t.Errorf("%s: a shard asks", what)
		}
	}
}

// What a level inside of a table says is in force in the place of what the table says, in each of its forms.
func TestLevelInsideADividedTable(t *testing.T) {
	own := &ir.Access{Hidden: []string{"x-user"}}
	names := func(r map[string]bool, m *filterchainv3.FilterChainConfigPerRoute) {
		for _, f := range m.FilterChain.Filters {
			r[f.Name] = true
		}
	}
	for _, divided := range []bool{false, true} {
		h := simpleHost(1)
		h.Around = &ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{{Name: "nobody", Never: true}}}}
		h.Rules[0].Filters.Access = own
		if divided {
			h.Divided = "t"
		}
		part, errs := HostPart(h)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		route := decode(t, RouteTable("t", []*Part{part}), &routev3.RouteConfiguration{}).VirtualHosts[0].Routes[0]
		slot := &filterchainv3.FilterChainConfigPerRoute{}
		if err := route.TypedPerFilterConfig[accessSlot].UnmarshalTo(slot); err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{}
		names(has, slot)
		if !has[accessHeaders] || !has[accessConditions] || has[accessArrived] != divided {
			t.Errorf("divided %t: the slot has %v", divided, has)
		}
		off := &routev3.FilterConfig{}
		beside := route.TypedPerFilterConfig[TableAccessFilter("t")]
		if !divided {
			if beside != nil {
				t.Errorf("a host of a whole table says %v", beside)
			}
			continue
		}
		if err := beside.UnmarshalTo(off); err != nil || !off.Disabled {
			t.Errorf("what stands beside the table is in force as well: %v, %v", off, err)
		}
	}
}
