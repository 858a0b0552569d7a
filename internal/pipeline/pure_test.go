package pipeline

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoClient looks at all that the stages between the rims are made of: what they compute
// depends on their inputs alone, so none of it can reach an API server. The linter sees only
// what a package imports itself.
func TestNoClient(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "../view", "../infra").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatal("too few packages to be all:", deps)
	}
	for _, dep := range deps {
		for _, client := range []string{"k8s.io/client-go/rest", "sigs.k8s.io/controller-runtime/"} {
			if strings.HasPrefix(dep, client) {
				t.Errorf("%s is among the dependencies", dep)
			}
		}
	}
}
