package agent

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

const (
	// Everybody who reaches the pod reaches these pages, so nobody may hold them for
	// long or exhaust them.
	headerTimeout  = 5 * time.Second
	answerTimeout  = 30 * time.Second
	maxHealthBytes = 16 << 10
)

func (a *Agent) healthServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", a.metrics())
	return &http.Server{
		Handler: mux, MaxHeaderBytes: maxHealthBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: answerTimeout,
	}
}

func (a *Agent) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := a.ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// ready says why no clients should be sent here.
func (a *Agent) ready() error {
	state := a.supervisor.Snapshot()
	switch {
	case a.draining.Load():
		return errors.New("draining")
	case state.Live:
		return nil
	case state.Phase != proxy.PhaseRunning && state.LastExit != nil:
		return fmt.Errorf("envoy is %s; the last one: %s", state.Phase, state.LastExit)
	case state.Phase != proxy.PhaseRunning:
		return fmt.Errorf("envoy is %s", state.Phase)
	}
	if relay := a.relay.state(); relay.lastError != nil {
		return fmt.Errorf("no configuration yet: %w", relay.lastError)
	}
	return errors.New("no configuration yet")
}
