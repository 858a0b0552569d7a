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

// mistakesIn are what people write in place of what they mean, by what they mean.
var mistakesIn = map[string][]string{
	"kind: HTTPRoute":           {"kind: HTTPRout", "kind: httproute", "kind: HttpRoute", "knd: HTTPRoute", "kind:", "kind HTTPRoute"},
	"gateway.networking.k8s.io": {"gateway.networking.k8s.oi", "gateway.networking.k8s", "networking.k8s.io"},
	"/v1\n":                     {"/v1x\n", "/v2\n", "/ v1\n"},
	"apiVersion":                {"apiVerson", "apiversion"},
	"metadata":                  {"metdata", "meta data", "Metadata"},
	"name: guard":               {"nme: guard", "name: 7", "name: Guard_", "name:", "name: guards"},
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
	"---\n":                     {"", "--\n", "----\n"},
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
		case 1: // written by halves
			s.write(t, "guard.yaml", good[:len(good)/3+r.IntN(len(good)/3)])
			l.more(t, 20)
		case 2: // beside others, with no line between
			text = siteRoute("aside", "aside.example", "v1") + text
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
	t.Logf("%d requests in %d edits: %v", l.sent.Load(), *guardEdits, wrong)
}
