package fleetapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
)

// TestSilentWatch protects a watch of which nothing is to be told for longer than an event may take to be written.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	const within = 50 * time.Millisecond
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		to := sender{control: http.NewResponseController(w), encode: json.NewEncoder(w), within: within}
		e := &entry{key: key{"shop", "web-1"}, proxy: proxy("web-1", fleet.Current)}
		for range 2 {
			if err := to.send(watch.Modified, e); err != nil {
				t.Errorf("an event can't be sent: %v", err)
			}
			time.Sleep(4 * within)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	res, err := server.Client().Get(server.URL) //nolint:noctx // of a server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.ProtoMajor != 2 {
		t.Fatalf("it speaks %s", res.Proto)
	}
	events := json.NewDecoder(res.Body)
	for i := range 2 {
		var e metav1.WatchEvent
		if err := events.Decode(&e); err != nil || e.Type != string(watch.Modified) {
			t.Fatalf("event %d: %+v, %v", i, e, err)
		}
	}
}
