package loop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestProxyStates says that a refusal which any replica has heard of counts, for as
// long as the replica is there and says so.
func TestProxyStates(t *testing.T) {
	gateway, other := object.Name{Namespace: "infra", Name: "a"}, object.Name{Namespace: "infra", Name: "b"}
	serves := xds.State{Connected: 1, Synced: true, Listeners: map[string]string{"http-80": "1"}}
	refuses := serves
	refuses.Rejected = []xds.Rejected{{Ref: xds.Ref{Type: envoy.Listeners, Name: "http-80"}, Message: "bad"}}

	p := States{}
	p.Take("", gateway, serves)
	if got := p.Take("one", gateway, refuses); got.Connected != 2 || len(got.Rejected) != 1 {
		t.Errorf("two replicas say %+v", got)
	}
	p.Take("one", other, serves)
	if got := p.Take("one", gateway, serves); len(got.Rejected) != 0 {
		t.Errorf("what is taken back stays: %+v", got)
	}
	p.Take("one", gateway, refuses)
	if d := cmp.Diff(map[object.Name]bool{gateway: true, other: true}, setOf(p.Drop("one"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(serves, p.Merged(gateway)); d != "" {
		t.Errorf("a replica that is gone still speaks:\n%s", d)
	}
	if p.Heard(other) || !p.Heard(gateway) {
		t.Error("who has been heard is wrong")
	}
	if got := p.Take("", gateway, xds.State{}); got.Connected != 0 || len(p[gateway]) != 0 {
		t.Errorf("who has nothing to say says %+v", got)
	}
}

func setOf(names []object.Name) map[object.Name]bool {
	out := map[object.Name]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}
