package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	headerTime = 5 * time.Second
	idleTime   = time.Minute
	maxHeader  = 32 << 10
	stopTime   = 2 * time.Second
	pingTime   = 15 * time.Second
	// A replica has one stream for each of the others, a proxy one at a time.
	maxStreams = 16
)

// ServerOptions configure a Server.
type ServerOptions struct {
	Authority *Authority

	// Client reads the API server itself, not a cache: a pod that was deleted a
	// moment ago gets nothing. It must be allowed to create TokenReviews, and to
	// get and watch pods where there are Gateways.
	Client kube.WithWatch

	// Namespaces returns those in which the pods of a Gateway's fleet may be; nil is the Gateway's own. What a pod of
	// another namespace says counts for nothing.
	Namespaces func(gateway object.Name) []string

	// Fleet returns the ServiceAccount of a Gateway's fleet; false if the Gateway is to have none.
	Fleet func(gateway object.Name) (serviceAccount object.Name, ok bool)

	// Limits, if not nil, returns the ServiceAccount of the pods that count requests for a
	// Gateway's fleet; zero if there is to be none.
	Limits func(gateway object.Name) (serviceAccount object.Name)

	// Former, if not nil, reports whether another ServiceAccount, in one of those namespaces, is of a fleet that
	// serves the Gateway still: that of a class which the Gateway had before, or in a former namespace.
	Former func(ctx context.Context, gateway, serviceAccount object.Name) (bool, error)

	// AnySource accepts tokens from any address, for networks that hide those of
	// pods. Otherwise a token is accepted from its own pod's addresses only.
	AnySource bool

	// Log gets refusals; slog.Default if nil.
	Log *slog.Logger
}

// Server is the controllers' HTTPS server: there proxies ask for certificates, and
// controllers talk to each other.
type Server struct {
	o        ServerOptions
	log      *slog.Logger
	mux      *http.ServeMux
	limiter  *limiter
	refusals *refusals
	issued   prometheus.Counter
	reviews  chan struct{}
	waits    chan struct{}
	failures rate.Sometimes
}

// NewServer returns a server that answers requests for certificates.
func NewServer(o ServerOptions) *Server {
	s := &Server{
		o:        o,
		log:      o.Log,
		mux:      http.NewServeMux(),
		limiter:  newLimiter(),
		reviews:  make(chan struct{}, maxReviews),
		waits:    make(chan struct{}, maxWaits),
		failures: rate.Sometimes{First: firstLines, Interval: lineInterval},
		issued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_identity_certificates_total",
			Help: "Certificates that were issued to proxies.",
		}),
	}
	s.o.Namespaces = orOwn(o.Namespaces)
	if s.log == nil {
		s.log = slog.Default()
	}
	s.refusals = newRefusals(s.log)
	s.mux.HandleFunc("POST "+client.Path, s.certificate)
	return s
}

// Collectors returns the server's metrics.
func (s *Server) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.refusals.count, s.issued}
}

// HandleControllers adds a handler for controllers only: it is reached with the
// certificate of one, which Controller tells from the request's TLS.
func (s *Server) HandleControllers(pattern string, h http.Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if _, err := Controller(*r.TLS); err != nil {
			s.refusals.add(reasonStranger, err.Error(), sourceOf(r).String(), "path", r.URL.Path)
			reply(w, http.StatusForbidden, client.Problem{Error: "this is for controllers only"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Serve serves a listener, which it closes, until the context ends. It waits until
// the authority is ready.
func (s *Server) Serve(ctx context.Context, lis net.Listener) error {
	defer lis.Close()
	select {
	case <-s.o.Authority.Ready():
	case <-ctx.Done():
		return nil
	}
	server := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: idleTime, PingTimeout: pingTime},
		ErrorLog:          slog.NewLogLogger(&handshakes{Handler: s.log.Handler(), refusals: s.refusals}, slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if server.Shutdown(stopping) != nil {
			_ = server.Close()
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	config := s.o.Authority.ServerTLS(tls.VerifyClientCertIfGiven, "h2", "http/1.1")
	if err := server.Serve(tls.NewListener(lis, config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the controller's API: %w", err)
	}
	return nil
}

// handshakes finds refused handshakes in the log of net/http, which reports them in no
// other way.
type handshakes struct {
	slog.Handler
	refusals *refusals
}

func (h *handshakes) Handle(ctx context.Context, r slog.Record) error {
	text, ok := strings.CutPrefix(r.Message, "http: TLS handshake error from ")
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	source, text, _ := strings.Cut(text, ": ")
	h.refusals.add(reasonHandshake, text, source)
	return nil
}
