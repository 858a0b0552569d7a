package figures

import (
	"fmt"
	"io"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Answers are what a proxy has answered since its Envoy began: over all listeners of HTTP.
type Answers struct {
	Requests, Errors float64 // Errors are the answers with 5xx
	// Latency has how many took up to so many milliseconds.
	Latency map[float64]float64
}

// ReadAnswers reads them off the metrics of a proxy, in the text format of Prometheus.
func ReadAnswers(text io.Reader) (Answers, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return Answers{}, fmt.Errorf("read the metrics of a proxy: %w", err)
	}
	out := Answers{Latency: map[float64]float64{}}
	for _, m := range families["envoy_http_downstream_rq_xx"].GetMetric() {
		if ofClients(m) {
			n := m.GetCounter().GetValue()
			out.Requests += n
			if label(m, "envoy_response_code_class") == "5" {
				out.Errors += n
			}
		}
	}
	for _, m := range families["envoy_http_downstream_rq_time"].GetMetric() {
		if ofClients(m) {
			for _, b := range m.GetHistogram().GetBucket() {
				out.Latency[b.GetUpperBound()] += float64(b.GetCumulativeCount())
			}
		}
	}
	return out, nil
}

// ofClients leaves out what Envoy's own interface has answered.
func ofClients(m *dto.Metric) bool { return label(m, "envoy_http_conn_manager_prefix") != "admin" }

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Add adds what was answered between two readings of one proxy. Of an Envoy that has begun anew all counts
// that it has answered since.
func (a *Answers) Add(before, now Answers) {
	if now.Requests < before.Requests {
		before = Answers{}
	}
	a.Requests += now.Requests - before.Requests
	a.Errors += now.Errors - before.Errors
	if a.Latency == nil {
		a.Latency = map[float64]float64{}
	}
	for bound, n := range now.Latency {
		a.Latency[bound] += n - before.Latency[bound]
	}
}

// share is that of errors, in percent.
func (a Answers) share() float64 {
	if a.Requests == 0 {
		return 0
	}
	return 100 * a.Errors / a.Requests
}

// p99 is an estimate in milliseconds, as Prometheus makes it of buckets; NaN where there is none.
func (a Answers) p99() float64 {
	bounds := make([]float64, 0, len(a.Latency))
	for bound := range a.Latency {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 || a.Latency[bounds[len(bounds)-1]] == 0 {
		return math.NaN()
	}
	rank := 0.99 * a.Latency[bounds[len(bounds)-1]]
	below, n := 0.0, 0.0
	for _, bound := range bounds {
		if c := a.Latency[bound]; c >= rank {
			if math.IsInf(bound, 1) {
				return below
			}
			return below + (bound-below)*(rank-n)/(c-n)
		}
		below, n = bound, a.Latency[bound]
	}
	return below
}

func (a Answers) String() string {
	text := fmt.Sprintf("%.1f%% of %.0f requests with 5xx", a.share(), a.Requests)
	if p99 := a.p99(); !math.IsNaN(p99) {
		text += fmt.Sprintf(", 99%% within %.0f ms", p99)
	}
	return text
}

// Margins are by how much new proxies may do worse than those that serve.
type Margins struct {
	Errors  float64 // percentage points of answers with 5xx
	Latency float64 // percent of the 99th percentile
}

// slack is a difference of latencies, in milliseconds, that says nothing: it is less than what tells
// buckets apart.
const slack = 5

// enough is how many requests tell something of a proxy.
const enough = 100

// Verdict is what a comparison comes to.
type Verdict string

// The verdicts.
const (
	NoWorse  Verdict = "NoWorse"
	Worse    Verdict = "Worse"
	TooEarly Verdict = "TooEarly" // there is too little to tell
)

// Compare says whether new proxies do worse than those that serve, and gives the figures. Where neither has
// had a request there is nothing that they could have done worse.
func Compare(live, next Answers, m Margins) (Verdict, string) {
	text := fmt.Sprintf("it has answered %s; those that serve %s", next, live)
	switch slower := live.p99()*(1+m.Latency/100) + slack; {
	case next.Requests == 0 && live.Requests == 0:
		return NoWorse, "there were no requests"
	case next.Requests == 0:
		return TooEarly, "it has had no requests, while those that serve have"
	case next.Requests < enough:
		return TooEarly, fmt.Sprintf("it has not had the %d requests that tell something yet", enough)
	case next.share() > live.share()+m.Errors:
		return Worse, text
	case live.Requests >= enough && next.p99() > slower:
		return Worse, text
	}
	return NoWorse, text
}
