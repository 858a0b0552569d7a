package replicas_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/replicas"
)

// TestBoard protects what a replica says of its proxies from being known late, or for longer than the replica is there.
func TestBoard(t *testing.T) {
	t.Parallel()
	b := replicas.NewBoard()
	mux := http.NewServeMux()
	mux.Handle("GET "+replicas.ProxiesPath, b)
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := replicas.NewReader(func() (*tls.Config, error) {
		return server.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), nil
	}, slog.New(slog.DiscardHandler))
	defer r.Wait()
	defer cancel()
	says := func(want string) {
		t.Helper()
		for {
			lists, known := r.Lists()
			got := ""
			for _, l := range lists {
				for _, p := range l.Proxies {
					got += p.Pod + " " + string(p.State)
				}
			}
			if known && got == want {
				return
			}
			select {
			case <-r.Changed():
			case <-t.Context().Done():
				t.Fatalf("it says %q, not %q", got, want)
			}
		}
	}
	address := strings.TrimPrefix(server.URL, "https://")
	r.Set(ctx, map[string]bool{address: true})
	says("")
	for _, state := range []fleet.State{fleet.Current, fleet.Refused} {
		b.Set(fleet.List{Replica: "one", Proxies: []fleet.Proxy{{Gateway: "shop/web", Pod: "a", State: state}}})
		says("a " + string(state))
	}
	r.Set(ctx, nil)
	says("")
}
