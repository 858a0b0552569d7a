package loop

import (
	"fmt"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

func logFailures(log *slog.Logger, c *flow.Commit) {
	for _, f := range c.Failures {
		log.Error("a value could not be processed, please report this; Gateways that may depend on it stay as they are until it can be",
			"table", f.Table, "key", fmt.Sprint(f.Key), "cause", fmt.Sprint(f.Cause), "stack", f.Stack)
	}
}

func logWithheld(log *slog.Logger, begins bool) {
	if begins {
		log.Error("proxies of some Gateways are sent nothing but endpoints: what could not be processed may be a part of a guard")
	} else {
		log.Info("all values can be processed again, and no Gateway waits for them")
	}
}

// maxProblemLines bounds what one commit logs of broken inputs; a tree of files
// that is replaced by nonsense must not bury what else is said.
const maxProblemLines = 20

// logProblems logs what a commit brings of broken inputs.
func logProblems(log *slog.Logger, p *pipeline.Pipeline, c *flow.Commit) {
	fresh := 0
	tell := func(old, now []source.Problem) {
		known := map[string]bool{}
		for _, problem := range old {
			known[problem.Error()] = true
		}
		for _, problem := range now {
			if known[problem.Error()] {
				continue
			}
			if fresh++; fresh <= maxProblemLines {
				log.Warn("input problem", "problem", problem.Error(), "reason", string(problem.Reason), "last_good_stays", problem.Stale)
			}
		}
	}
	for _, ch := range flow.Changes(c, p.Problems) {
		tell(ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.WithoutEffect) {
		tell(pipeline.ProblemsOf(ch.Old), pipeline.ProblemsOf(ch.New))
	}
	if fresh > maxProblemLines {
		log.Warn("more input problems; `gatehouse status` shows all", "more", fresh-maxProblemLines)
	}
}
