package fleet

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := apiserver.Shared(m).Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestFleet protects that a fleet converges, whatever its size: from a start, by edits, additions
// and removals, after another controller, and beside a proxy that is frozen.
func TestFleet(t *testing.T) {
	t.Parallel()
	s := Simulate(t, 200)
	s.Grow(50)
	s.Alike()
	if n := s.Proxies[0].Has(envoy.Clusters); n != 200 {
		t.Errorf("a proxy has %d clusters of 200", n)
	}
	for range 3 {
		s.EditBy(50)
	}
	frozen := s.Proxies[49]
	frozen.Freeze()
	s.EditBy(49)
	s.Make(s.Route("more", Simulated, 0, Nowhere)...)
	s.EditBy(49)
	frozen.Thaw()
	s.Until("the frozen one has what the others have", func() error {
		if frozen.Newest() != s.Edits {
			return errors.New("it is behind")
		}
		return nil
	})
	s.Until("the new route is everywhere", func() error { return s.Have(envoy.Clusters, 201) })
	s.Alike()
	for _, o := range s.Route("more", Simulated, 0, Nowhere) {
		if err := s.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("the route is gone everywhere", func() error { return s.Have(envoy.Clusters, 200) })

	received := s.Received()
	s.Controller.Kill()
	s.Controller.Run()
	s.Controller.Ready()
	s.Until("all proxies are back", func() error {
		if n := s.Controller.Metric("gatehouse_xds_sessions"); n != 50 {
			return fmt.Errorf("%v are connected", n)
		}
		return nil
	})
	if more := s.Received() - received; more != 0 {
		t.Errorf("another controller sends %d bytes again", more)
	}
	s.EditBy(50)
	s.Alike()
}
