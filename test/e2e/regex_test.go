//go:build linux

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The most that one route may cost Envoy.
const (
	routeMemory = 64 << 20
	routeTime   = 200 * time.Millisecond
)

// TestRegexBudget protects Envoy from a route with many regular expressions: what is over
// the limit costs nothing but itself, and says so, and what is within it costs Envoy little,
// however dear its instructions are.
func TestRegexBudget(t *testing.T) {
	t.Parallel()
	s := edgeSite(t, nil)
	// Repetitions that are counted make many instructions of few characters, and
	// expressions that tell many bytes apart make dear ones.
	counted := func(i int) string { return strconv.Itoa(i) + strings.Repeat("[ab]{999}", 9) }
	dear := func(bytes int) func(int) string {
		return func(i int) string {
			var b strings.Builder
			b.WriteString(strconv.Itoa(i))
			for j := range bytes {
				fmt.Fprintf(&b, `\x%02x`, 33+j%222)
			}
			return b.String()
		}
	}
	// route has that many header matches, 16 in each match of a rule of up to 64.
	route := func(name string, headers int, pattern func(int) string, hosts ...string) string {
		var rules strings.Builder
		for i := 0; i < headers; i += 16 {
			if i%(16*64) == 0 {
				rules.WriteString("- backendRefs: [{name: v1, port: 8080}]\n  matches:\n")
			}
			rules.WriteString("  - headers:\n")
			for j := i; j < min(i+16, headers); j++ {
				fmt.Fprintf(&rules, "    - {name: x-%d, type: RegularExpression, value: '%s'}\n", j, pattern(j))
			}
		}
		return siteRules(name, strings.Join(hosts, ", "), rules.String())
	}
	sixteen := []string{"dear.example"}
	for i := range 15 {
		sixteen = append(sixteen, fmt.Sprintf("dear%d.example", i))
	}
	memory, _ := s.envoyCost(t)
	s.beside(t, func() {
		for i, c := range []struct {
			what     string
			headers  int
			pattern  func(int) string
			hosts    []string
			accepted bool
		}{
			{"1,024 expressions, 84 KB", 1024, counted, sixteen[:1], false},
			{"1,024 dear ones", 1024, dear(80), sixteen[:1], false},
			{"as much as may be, dear", 49, dear(990), sixteen[:1], true},
			{"the same on one host more", 49, dear(990), sixteen[:2], false},
			{"as much as may be, in short ones", 16 * 124, dear(16), sixteen[:1], true},
			{"as much as may be, in short ones on 16 hosts", 16 * 24, dear(1), sixteen, true},
		} {
			_, busy := s.envoyCost(t)
			name := fmt.Sprintf("dear%d", i)
			s.write(t, "dear.yaml", route(name, c.headers, c.pattern, c.hosts...))
			if c.accepted {
				s.conditions(t, "HTTPRoute "+name, "gw", "Accepted=True")
			} else {
				s.conditions(t, "HTTPRoute "+name, "gw", "Accepted=False/UnsupportedValue")
				s.says(t, "HTTPRoute "+name, "over the limit of 50000 for a route")
			}
			// Envoy has taken whatever it was sent when it answers for a host that came later.
			later := fmt.Sprintf("later%d.example", i)
			s.write(t, "later.yaml", siteRoute("later", later, "v1"))
			s.serves(t, later, "v1")
			// A busy worker lets go of the former table only when its turn comes, and until then
			// Envoy has both: what it keeps is what counts. Time that was taken is taken.
			_, busyNow := s.envoyCost(t)
			err := poll(changeTimeout, func() error {
				memoryNow, _ := s.envoyCost(t)
				if memoryNow-memory > routeMemory {
					return fmt.Errorf("%.1f MiB", float64(memoryNow-memory)/(1<<20))
				}
				t.Logf("%s: %.1f MiB, %s on the main thread", c.what, float64(memoryNow-memory)/(1<<20), busyNow-busy)
				return nil
			})
			if err != nil || busyNow-busy > routeTime {
				t.Errorf("%s costs Envoy more memory than it may (%v), or time: %s", c.what, err, busyNow-busy)
			}
		}
	})
}
