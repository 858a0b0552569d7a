package apply

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// faults has the first write of each object fail, in one way after the other.
type faults struct {
	next http.RoundTripper

	mu    sync.Mutex
	seen  map[string]bool
	after []string // what was tried, by object
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	first := r.Method != http.MethodGet && !f.seen[r.URL.Path]
	n := len(f.seen)
	if r.Method != http.MethodGet {
		f.seen[r.URL.Path] = true
		f.after = append(f.after, r.URL.Path)
	}
	f.mu.Unlock()
	if !first {
		return f.next.RoundTrip(r)
	}
	switch n % 4 {
	case 0:
		return refusal(r, http.StatusConflict, "Conflict"), nil
	case 1:
		return refusal(r, http.StatusInternalServerError, "InternalError"), nil
	case 2:
		return nil, errors.New("the connection was reset")
	default: // it is done, and nobody hears of it
		answer, err := f.next.RoundTrip(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return nil, errors.New("the answer is lost")
	}
}

// refusal is what the API server answers to what it doesn't do.
func refusal(r *http.Request, code int, reason string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "` + reason + `", "message": "a fault"}`)),
	}
}

// Each object's first write fails: by a conflict, by an error of the API server, by a
// broken connection, by an answer that is lost. The fleet comes to be nevertheless, each
// object is written once more and no oftener, and nothing is left to do.
func testFaults(t *testing.T, at *applierTest) {
	f := &faults{seen: map[string]bool{}}
	at.rest = rest.CopyConfig(at.rest)
	at.rest.Wrap(func(next http.RoundTripper) http.RoundTripper { f.next = next; return f })
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("the whole fleet", func() bool {
		return at.get(g, &appsv1.Deployment{}) && at.get(g, &corev1.Service{}) && at.get(g, &corev1.ConfigMap{}) && at.get(g, &corev1.ServiceAccount{})
	})
	at.await("nothing more is wrong than that no pod runs", func() bool {
		s := a.state(g.Name)
		return s != nil && !strings.Contains(s.Problem, "fault") && !strings.Contains(s.Problem, "connection") && !strings.Contains(s.Problem, "answer")
	})
	a.finish()
	f.mu.Lock()
	tried := f.after
	f.mu.Unlock()
	count := map[string]int{}
	for _, path := range tried {
		count[path]++
	}
	if len(count) != 4 {
		t.Errorf("the objects written are %v", count)
	}
	for path, n := range count {
		if n > 2 {
			t.Errorf("%s is written %d times", path, n)
		}
	}

	b := at.start()
	b.Set(at.gateway())
	b.Complete()
	at.await("it has looked", func() bool { return b.state(g.Name) != nil })
	b.finish()
	if w := b.take(); len(w) > 0 {
		t.Errorf("the next one finds something to do: %v", w)
	}
}
