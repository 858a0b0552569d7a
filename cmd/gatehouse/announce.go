package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// announce tells a person what goes on: on a screen, or by log lines.
type announce struct {
	log    *slog.Logger
	screen *terminal.Live // nil off a terminal
	wake   chan struct{}
}

func announcer(log *slog.Logger, screen *terminal.Live) *announce {
	return &announce{log: log, screen: screen, wake: make(chan struct{}, 1)}
}

// changed is called after each commit.
func (a *announce) changed() {
	if a.screen != nil {
		a.screen.Changed()
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// states logs the objects that became bad, or good again. The screen shows them
// as they are.
func (a *announce) states(changes []view.StateChange) {
	if a.screen != nil {
		return
	}
	view.LogStates(a.log, changes)
}

// stopping says once that the Envoys drain.
func (a *announce) stopping(drain string) {
	if a.screen != nil {
		a.screen.Stopping()
		return
	}
	a.log.Info("stopping: clients may finish; Ctrl-C again ends them now", "at_most", drain)
}

const (
	// shownCommands is how many commands are shown that reach a route, at most.
	shownCommands = 5
	// triedRoutes is for how many routes of each kind a command is looked for: not every one has one.
	triedRoutes = 20
)

// run tells until done is closed.
func (a *announce) run(done <-chan struct{}, s *standalone.Standalone) {
	if a.screen != nil {
		a.screen.Run(done, s.View)
		return
	}
	// Without a screen: once ready, say how to reach the routes.
	waiting := ""
	var v view.View
	left := 0
	for {
		select {
		case <-done:
			return
		case <-a.wake:
		}
		ok, _ := s.Ready()
		now := strings.Join(s.Waiting(), ", ")
		if ok && now != "" && now != waiting {
			a.log.Warn("waiting for files to appear", "path", now)
		}
		waiting = now
		if !ok {
			continue
		}
		if v, left = s.Brief(triedRoutes); waiting == "" || len(v.Items) > 0 {
			break
		}
	}
	needed := terminal.Needed(v)
	level := slog.LevelInfo
	attrs := []any{"objects", len(v.Items) + left}
	if needed.Any() {
		level = slog.LevelWarn
		attrs = append(attrs, "need_attention", needed.Objects+needed.Files)
	}
	a.log.Log(context.Background(), level, "ready", attrs...)
	if !hasGateway(v) {
		a.log.Info("no Gateway of class gatehouse yet: save one with spec.gatewayClassName gatehouse")
	}
	for _, t := range terminal.Try(v, shownCommands) {
		a.log.Info("try", "command", t)
	}
	<-done
}

func hasGateway(v view.View) bool {
	for _, it := range v.Items {
		if it.Kind == kind.Gateway.Name() {
			return true
		}
	}
	return false
}
