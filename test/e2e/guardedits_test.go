//go:build linux

package e2e

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

var (
	guardEdits = flag.Int("guard-edits", 40, "how many edits TestGuardedThroughEdits makes")
	guardSeed  = flag.Uint64("guard-seed", 1, "which edits these are")
)

// mistakesIn are what people write in place of what they mean, by what they mean. All leave it
// told which object the text is about, or make it no YAML.
var mistakesIn = map[string][]string{
	"kind: HTTPRoute":           {"kind: HTTPRout", "kind: HttpRoute", "kind HTTPRoute"},
	"gateway.networking.k8s.io": {"gateway.networking.k8s.oi", "gateway.networking.k8s"},
	"/v1\n":                     {"/v1x\n", "/v2\n"},
	"parentRefs":                {"parentRef", "parents"},
	"hostnames":                 {"hostname", "hosts"},
	"rules":                     {"rule", "ruls"},
	"matches":                   {"match", "matchs"},
	"filters":                   {"filter", "filtrs"},
	"externalAuth":              {"externalauth", "extAuth"},
	"ExternalAuth":              {"ExternalAut", "externalAuth"},
	"protocol: GRPC":            {"protocol: grpc", "protocol: GRCP", "protocol:"},
	"backendRef:":               {"backendRefs:", "backend:"},
	"type":                      {"typ", "kind"},
}

// TestGuardedThroughEdits makes edits with mistakes in what guards, and restarts in between: not
// one request passes.
func TestGuardedThroughEdits(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := guardedSite(t)
	good := guard("ExternalAuth")
	r := rand.New(rand.NewPCG(*guardSeed, 0)) //nolint:gosec // no secret
	meant := slices.Sorted(maps.Keys(mistakesIn))
	meant = slices.DeleteFunc(meant, func(m string) bool { return !strings.Contains(good, m) })
	wrongly := func(text string) string {
		m := meant[r.IntN(len(meant))]
		return strings.Replace(text, m, mistakesIn[m][r.IntN(len(mistakesIn[m]))], 1)
	}
	l := startLoad(t, s.listener(), 2, func() string { return guardedPath + "&rest=" })
	for range *guardEdits {
		text := wrongly(good)
		switch r.IntN(4) {
		case 0:
			text = wrongly(text)
		case 1: // beside others, with no line between
			text = strings.TrimPrefix(siteRoute("aside", "aside.example", "v1")+strings.TrimPrefix(text, "---\n"), "---\n")
		}
		s.write(t, "guard.yaml", text)
		l.more(t, 40)
		switch r.IntN(6) {
		case 0:
			if _, err := s.terminate(); err != nil {
				t.Fatal(err)
			}
			s.again(t)
		case 1:
			s.kill()
			s.again(t)
		}
		l.more(t, 20)
		if r.IntN(2) == 0 {
			s.write(t, "guard.yaml", good)
			l.more(t, 20)
		}
	}
	passed, wrong := l.passed()
	if passed != 0 {
		t.Errorf("%d of %d requests passed the guard in %d edits: %v", passed, l.sent.Load(), *guardEdits, wrong)
	}
	t.Logf("%d requests in %d edits, %d answered: %v", l.sent.Load(), *guardEdits, l.answered.Load(), wrong)
}
