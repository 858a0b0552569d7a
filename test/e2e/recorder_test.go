//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
)

// recorder is a service that keeps what it is sent: a backend, the backend of a mirror, or a service that
// decides who may pass, over HTTP or gRPC, which refuses those whose query says refuse= and its name.
type recorder struct {
	authv3.UnimplementedAuthorizationServer
	name string
	port int
	mu   sync.Mutex
	seen []sent
}

// sent is a request as it reached a recorder.
type sent struct {
	path    string
	headers http.Header // of HTTP, as Go reads them; of gRPC, those of the request that is asked about
	text    string      // all of it
}

func (r *recorder) keep(path string, headers http.Header, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, sent{path, headers, text})
}

// at returns the last request for a path; false for none.
func (r *recorder) at(path string) (sent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.seen) {
		if s.path == path {
			return s, true
		}
	}
	return sent{}, false
}

// paths are those of all requests, each once.
func (r *recorder) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, s := range r.seen {
		all = append(all, s.path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// gets waits until there has been a request for a path.
func (r *recorder) gets(t *testing.T, path string) sent {
	t.Helper()
	var out sent
	eventually(t, siteTimeout, func() error {
		var ok bool
		if out, ok = r.at(path); !ok {
			return fmt.Errorf("%s has had no request for %s, but for %q", r.name, path, r.paths())
		}
		return nil
	})
	return out
}

func (r *recorder) refuses(query url.Values) bool { return query.Get("refuse") == r.name }

// startRecorder starts one that speaks HTTP.
func startRecorder(t *testing.T, name string) *recorder {
	r := &recorder{name: name}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		var text strings.Builder
		fmt.Fprintf(&text, "%s %s %s\n", in.Method, in.Host, in.RequestURI)
		_ = in.Header.Write(&text)
		r.keep(in.URL.Path, in.Header, text.String())
		if r.refuses(in.URL.Query()) {
			http.Error(w, r.name+" says no", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	r.port = server.Listener.Addr().(*net.TCPAddr).Port
	return r
}

// startAuthRecorder starts one that is asked over gRPC.
func startAuthRecorder(t *testing.T, name string) *recorder {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{name: name, port: l.Addr().(*net.TCPAddr).Port}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return r
}

func (r *recorder) Check(_ context.Context, in *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	request := in.GetAttributes().GetRequest().GetHttp()
	u, err := url.ParseRequestURI(request.GetPath())
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	for name, value := range request.GetHeaders() {
		headers.Set(name, value)
	}
	r.keep(u.Path, headers, in.String())
	if r.refuses(u.Query()) {
		return denied(r.name), nil
	}
	return &authv3.CheckResponse{}, nil
}
