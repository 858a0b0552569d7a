package xds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

// A state that equals the last one is not told.
func TestStatesCompareEachField(t *testing.T) {
	equaltest.Fields(t, &State{}, (*State).equal)
}

// What proxies refuse fits into what a leader takes, however much it is: a state that is
// too large would end the stream of its replica, with all that it says of other Gateways.
func TestRefusalsAreBounded(t *testing.T) {
	for _, n := range []int{0, 1, 100, 20_000, 100_000} {
		list := make([]Rejected, n)
		for i := range list {
			name := fmt.Sprintf("namespace-with-a-long-name/service-with-a-long-name-%06d:8080", i)
			list[i] = Rejected{Ref: Ref{envoy.Clusters, name}, Version: strings.Repeat("f", 32), Message: strings.Repeat("<", maxMessage)}
		}
		got := bound(list)
		text, err := json.Marshal(State{Rejected: got})
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 16<<20 {
			t.Errorf("%d refusals are %d bytes", n, len(text))
		}
		if n <= 20_000 && len(got) != n {
			t.Errorf("of %d refusals %d are left", n, len(got))
		}
		if n <= 100 && n > 0 && got[0].Message != strings.Repeat("<", maxMessage) {
			t.Errorf("of %d refusals the messages are cut to %d bytes", n, len(got[0].Message))
		}
	}
}
