package fleetapi

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// clock is a time that a test sets.
type clock struct{ time.Time }

func (c *clock) store(since time.Duration) *Store {
	s := NewStore()
	s.now = func() time.Time { return c.Time }
	s.last = s.at(c.Add(-since).UnixMilli())
	s.oldest = s.last
	return s
}

func proxy(pod string, state fleet.State) fleet.Proxy {
	return fleet.Proxy{Gateway: "shop/web", Pod: pod, State: state, LagSeconds: float64(time.Now().UnixNano())}
}

// told is what a watch from a version is told.
func told(t *testing.T, s *Store, from version) string {
	t.Helper()
	place, err := s.place(from)
	if err != nil {
		t.Fatal(err)
	}
	changes, _, _ := s.since(place, selection{labels: labels.Everything()})
	var out []string
	for _, c := range changes {
		out = append(out, string(c.kind)+" "+c.name)
	}
	return strings.Join(out, ", ")
}

// TestChanges protects who lists and then watches from losing a change, and from being told what it knows.
func TestChanges(t *testing.T) {
	t.Parallel()
	now := &clock{time.Now()}
	s := now.store(0)
	everything := selection{labels: labels.Everything()}
	s.Set([]fleet.Proxy{proxy("a", fleet.Current), proxy("b", fleet.Current), {Gateway: "shop/web"}})
	list, listed := s.list(everything)
	if len(list) != 2 || list[0].name != "a" {
		t.Fatalf("%+v", list)
	}
	if got := told(t, s, listed); got != "" {
		t.Errorf("nothing has changed, and it is told: %s", got)
	}
	s.Set([]fleet.Proxy{proxy("a", fleet.Current), proxy("b", fleet.Current)})
	if got := told(t, s, listed); got != "" {
		t.Errorf("only the lag has changed, and it is told: %s", got)
	}
	s.Set([]fleet.Proxy{proxy("b", fleet.Refused), proxy("c", fleet.Current)})
	if got := told(t, s, listed); got != "DELETED a, MODIFIED b, ADDED c" {
		t.Errorf("it is told: %s", got)
	}
	_, again := s.list(everything)
	s.Set([]fleet.Proxy{proxy("a", fleet.Current), proxy("b", fleet.Refused), proxy("c", fleet.Current)})
	if got := told(t, s, again); got != "ADDED a" {
		t.Errorf("after the second list it is told: %s", got)
	}
	if got := told(t, s, listed); got != "DELETED a, MODIFIED b, ADDED a, ADDED c" && got != "DELETED a, MODIFIED b, ADDED c, ADDED a" {
		t.Errorf("of one that went and came back it is told: %s", got)
	}

	now.Time = now.Add(memory + time.Second)
	s.Set([]fleet.Proxy{proxy("a", fleet.Current)})
	if _, err := s.place(again); !errors.Is(err, errTooOld) {
		t.Errorf("a version of long ago: %v", err)
	}
	if len(s.gone) != 2 {
		t.Errorf("%d that are gone are remembered", len(s.gone))
	}
}

// TestOtherReplica protects who goes over to another controller from losing what that has noticed earlier.
func TestOtherReplica(t *testing.T) {
	t.Parallel()
	now := &clock{time.Now()}
	one, two := now.store(time.Minute), now.store(time.Minute)
	one.tag, two.tag = 1, 2
	one.Set([]fleet.Proxy{proxy("a", fleet.Current), proxy("b", fleet.Current)})
	two.Set([]fleet.Proxy{proxy("a", fleet.Current), proxy("b", fleet.Current)})
	now.Time = now.Add(time.Minute)
	two.Set([]fleet.Proxy{proxy("a", fleet.Refused), proxy("b", fleet.Current)}) // one hasn't noticed it
	now.Time = now.Add(time.Second)
	_, listed := one.list(selection{labels: labels.Everything()})
	if got := told(t, two, listed); got != "MODIFIED a" {
		t.Errorf("it is told: %s", got)
	}
	for what, v := range map[string]version{"of before it began": two.at(now.Add(-4 * time.Minute).UnixMilli()), "of the future": two.at(now.Add(time.Minute).UnixMilli()), "of the beginning": 1} {
		if _, err := two.place(v); !errors.Is(err, errTooOld) {
			t.Errorf("a version %s: %v", what, err)
		}
	}
}

// TestCallers protects the port from being opened by a ConfigMap that doesn't say who may.
func TestCallers(t *testing.T) {
	t.Parallel()
	front, clients := string(certs.Authority("front").PEM()), string(certs.Authority("clients").PEM())
	for name, c := range map[string]struct {
		data map[string]string
		ok   bool
	}{
		"usual":                 {map[string]string{"requestheader-client-ca-file": front, "client-ca-file": clients, "requestheader-allowed-names": `["front-proxy-client"]`}, true},
		"no names":              {map[string]string{"requestheader-client-ca-file": front, "client-ca-file": clients}, true},
		"nothing":               {nil, false},
		"no certificate":        {map[string]string{"requestheader-client-ca-file": "x"}, false},
		"names that are none":   {map[string]string{"requestheader-client-ca-file": front, "requestheader-allowed-names": "x"}, false},
		"clients are let in":    {map[string]string{"requestheader-client-ca-file": front, "client-ca-file": front + "\n", "requestheader-allowed-names": "[]"}, false},
		"some clients are":      {map[string]string{"requestheader-client-ca-file": front, "client-ca-file": clients + "# another\n" + front}, false},
		"one of many authority": {map[string]string{"requestheader-client-ca-file": front, "client-ca-file": front, "requestheader-allowed-names": `["front-proxy-client"]`}, true},
	} {
		got, err := parseCaller(c.data)
		if (err == nil) != c.ok || (got.pool != nil) != c.ok {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
