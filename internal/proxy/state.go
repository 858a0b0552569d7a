package proxy

import (
	"fmt"
	"strings"
	"time"
)

// Phase is where a supervised Envoy is in its life.
type Phase string

const (
	// PhaseStarting: the process runs, its admin interface does not answer yet.
	PhaseStarting Phase = "starting"
	// PhaseRunning: the process runs and its admin interface answers. Whether
	// it has its first configuration is State.Live.
	PhaseRunning Phase = "running"
	// PhaseStalled: the process runs and stands still, as one that was stopped does.
	// It is ended unless it goes on within seconds.
	PhaseStalled Phase = "stalled"
	// PhaseBackoff: it has died or could not be started; State.Next says when
	// it is tried again.
	PhaseBackoff Phase = "backoff"
	// PhaseDraining: it finishes what it has and will be stopped.
	PhaseDraining Phase = "draining"
	// PhaseStopped: no process, and none will be started. Also the phase
	// before Run.
	PhaseStopped Phase = "stopped"
)

// State is a snapshot of a supervised Envoy.
type State struct {
	Phase Phase
	// Live is Envoy's own word: it has its first listeners and clusters and
	// serves. It needs the xDS server.
	Live bool
	// PID is 0 without a process.
	PID int
	// Since is when the process was started, by whichever supervisor; in
	// PhaseBackoff, when the last one ended.
	Since time.Time
	// Restarts counts the processes started after the first one of this Run.
	Restarts int
	// Adopted says that an earlier supervisor started the process.
	Adopted bool
	// LastExit is how the previous process of this Run ended; nil if none has.
	LastExit *Exit
	// Next is when the next start is due, in PhaseBackoff.
	Next time.Time
}

// Exit says how an Envoy process ended, or why it could not be started.
type Exit struct {
	At  time.Time
	PID int
	// Code is the exit code; -1 if it was a signal or is not known.
	Code int
	// Signal is the signal's name ("killed"), if one ended the process.
	Signal string
	// Err is why the process could not be started.
	Err error
	// Stalled says that we have ended the process because it stood still.
	Stalled bool
	// Lines are the last that it printed, at most 20.
	Lines []string
}

// String tells the reason without the lines.
func (e *Exit) String() string {
	switch {
	case e.Err != nil:
		return "could not be started: " + e.Err.Error()
	case e.Stalled:
		return "stood still and was ended"
	case e.Signal != "":
		return "ended by signal: " + e.Signal
	case e.Code >= 0:
		return fmt.Sprintf("exit code %d", e.Code)
	default:
		// Only a parent learns the code.
		return "ended, exit code unknown (started by an earlier run)"
	}
}

// Detail tells the reason with the last lines.
func (e *Exit) Detail() string {
	return strings.Join(append([]string{e.String()}, e.Lines...), "\n")
}
