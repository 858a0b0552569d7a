package bars

import (
	"context"
	"os/exec"
	"strings"
)

// Origin says where figures come from.
type Origin struct {
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
}

// Here is this checkout and this machine.
func Here(ctx context.Context) Origin {
	return Origin{Commit: commit(ctx), Machine: machine()}
}

// commit names what is measured. A copy without its history has no name.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
