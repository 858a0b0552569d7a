package figures

import (
	"math"
	"strings"
	"testing"
)

// answered is what a proxy has answered of which one in a hundred took long, in milliseconds.
func answered(requests, errors, long float64) Answers {
	return Answers{Requests: requests, Errors: errors, Latency: map[float64]float64{
		1: requests * 0.5, long / 2: requests * 0.9, long: requests, math.Inf(1): requests,
	}}
}

// TestCompare protects clients from a revision that is worse, and people from waiting for one that is not.
func TestCompare(t *testing.T) {
	live := answered(1000, 10, 50)
	for name, c := range map[string]struct {
		live, next Answers
		want       Verdict
	}{
		"equal":                      {live, answered(300, 3, 50), NoWorse},
		"better":                     {live, answered(300, 0, 10), NoWorse},
		"within the margin":          {live, answered(300, 5, 70), NoWorse},
		"5 % of errors":              {live, answered(300, 15, 50), Worse},
		"three times as slow":        {live, answered(300, 3, 150), Worse},
		"no traffic":                 {Answers{}, Answers{}, NoWorse},
		"no traffic of the new":      {live, Answers{}, TooEarly},
		"too little":                 {live, answered(99, 99, 50), TooEarly},
		"errors without others":      {Answers{}, answered(100, 2, 50), Worse},
		"slow without others":        {Answers{}, answered(100, 0, 5000), NoWorse},
		"a millisecond is no matter": {answered(1000, 0, 1), answered(300, 0, 4), NoWorse},
	} {
		t.Run(name, func(t *testing.T) {
			if got, text := Compare(c.live, c.next, Margins{Errors: 1, Latency: 50}); got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, text)
			}
		})
	}
}

// TestReadAnswers reads what Envoy 1.40 says of itself.
func TestReadAnswers(t *testing.T) {
	a, err := ReadAnswers(strings.NewReader(`# TYPE envoy_http_downstream_rq_xx counter
envoy_http_downstream_rq_xx{gateway="a/b",envoy_response_code_class="5",envoy_http_conn_manager_prefix="http-80@0.0.0.0"} 3
envoy_http_downstream_rq_xx{gateway="a/b",envoy_response_code_class="2",envoy_http_conn_manager_prefix="http-80@0.0.0.0"} 7
envoy_http_downstream_rq_xx{gateway="a/b",envoy_response_code_class="2",envoy_http_conn_manager_prefix="admin"} 70
# TYPE envoy_http_downstream_rq_time histogram
envoy_http_downstream_rq_time_bucket{gateway="a/b",envoy_http_conn_manager_prefix="http-80@0.0.0.0",le="1"} 9
envoy_http_downstream_rq_time_bucket{gateway="a/b",envoy_http_conn_manager_prefix="http-80@0.0.0.0",le="+Inf"} 10
envoy_http_downstream_rq_time_sum{gateway="a/b",envoy_http_conn_manager_prefix="http-80@0.0.0.0"} 12
envoy_http_downstream_rq_time_count{gateway="a/b",envoy_http_conn_manager_prefix="http-80@0.0.0.0"} 10
`))
	if err != nil {
		t.Fatal(err)
	}
	if a.Requests != 10 || a.Errors != 3 || a.Latency[1] != 9 {
		t.Errorf("it has answered %+v", a)
	}
	var sum Answers
	sum.Add(Answers{Requests: 4, Errors: 1}, a)
	sum.Add(Answers{Requests: 400}, a) // of an Envoy before
	if sum.Requests != 16 || sum.Errors != 5 {
		t.Errorf("together it has answered %+v", sum)
	}
}
