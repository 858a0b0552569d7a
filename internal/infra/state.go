package infra

import "github.com/gatehouse-dev/gatehouse/internal/object"

// State is what there is to say of a Gateway's fleet.
type State struct {
	// Problem is why the fleet can't be made what it should be; empty while it can.
	Problem string `json:"problem,omitempty"`
	// Waiting is why no proxy is ready; empty while one is, and while none is just a
	// matter of seconds.
	Waiting string `json:"waiting,omitempty"`
	// Rollout is what keeps proxies from running, of which others may run.
	Rollout Rollout `json:"rollout,omitzero"`
	// Step is where another revision is with the strategy BlueGreen; zero with any other.
	Step Step `json:"step,omitzero"`
	// Counting says that requests are counted for all proxies together, and NotCounting why
	// they are not, where they are to be.
	Counting    bool   `json:"counting,omitempty"`
	NotCounting string `json:"notCounting,omitempty"`
	// Serving is the Service that clients are to use, while the Gateway moves here from
	// fleets of other classes; empty where it doesn't.
	Serving object.Name `json:"servingService,omitzero"`
}

// Step is where proxies of another revision are on their way to serving.
type Step struct {
	Stage Stage `json:"stage"`
	// Revision is the newest one, and Workload what runs it.
	Revision string `json:"revision"`
	Workload string `json:"workload"`
	// Live is the workload that serves until then.
	Live string `json:"live,omitempty"`
	// Ready are the proxies of the newest revision that are, of those that there are to be.
	Ready  int32 `json:"ready"`
	Wanted int32 `json:"wanted"`
	// Preview is the Service that leads to them.
	Preview string `json:"preview,omitempty"`
	// Why says what keeps one of them from the next stage, or what a comparison has come to, and
	// Promote which other revision somebody has wanted to promote.
	Why     string `json:"why,omitempty"`
	Promote string `json:"promote,omitempty"`
}

// Stage names a step.
type Stage string

// The stages, in their order.
const (
	Progressing Stage = "Progressing" // not all are ready
	Awaiting    Stage = "Awaiting"    // they are, and wait for their promotion
	Comparing   Stage = "Comparing"   // one gets requests, and is compared
	Worse       Stage = "Worse"       // it has been found to be worse, and has ended
	Promoted    Stage = "Promoted"    // they serve
)

// Rollout is a rollout that goes no further by itself; zero where there is none.
type Rollout struct {
	// Newest are the proxies that are ready and run the newest pod template, of those that
	// there are to be.
	Newest int32 `json:"newest"`
	Wanted int32 `json:"wanted"`
	// Why says what keeps one of the others from that.
	Why string `json:"why"`
}
