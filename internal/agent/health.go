package agent

import (
	"encoding/json"
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
	mux.HandleFunc("GET /lastgood", a.lastGood)
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
	if kept := a.kept.Report(); !kept.ServedSince.IsZero() {
		fmt.Fprintf(w, "ready, serving its last good configuration, kept at %s\n", kept.KeptAt.UTC().Format(time.RFC3339))
		return
	}
	fmt.Fprintln(w, "ready")
}

// lastGood shows what is kept, without what is in it.
func (a *Agent) lastGood(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.kept.Report())
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
