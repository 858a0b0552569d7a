package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// Envoy is up in under 0.1 s, so the first questions come quickly; one
	// that waits for its configuration is asked less often.
	probeFirst = 10 * time.Millisecond
	probeSlow  = 100 * time.Millisecond
	// A live Envoy leaves that state only when somebody drains it by hand, or when it
	// stands still.
	probeLive    = 2 * time.Second
	probeTimeout = time.Second
)

// Supervisor runs the Envoy of one Gateway.
type Supervisor struct {
	cfg   Config
	log   *slog.Logger
	admin *adminClient
	tail  *tail // while Run runs
	lock  *lock // while Run runs

	hurried    context.Context // ends when a drain shall wait no longer
	hurry      context.CancelFunc
	unrecorded bool // it was said that there is no record of the process

	mu    sync.Mutex
	state State
}

// New prepares a supervisor; nothing happens before Run.
func New(cfg Config) *Supervisor {
	cfg = cfg.withDefaults()
	hurried, hurry := context.WithCancel(context.Background())
	return &Supervisor{
		cfg:     cfg,
		log:     cfg.Log.With("gateway", cfg.Gateway.String()),
		admin:   newAdminClient(filepath.Join(cfg.Dir, adminSocket)),
		hurried: hurried,
		hurry:   hurry,
		state:   State{Phase: PhaseStopped},
	}
}

// Run adopts or starts Envoy and keeps it running until ctx ends; then it
// drains and stops it, and returns nil. Whatever happens to Envoy is no reason
// to return: it is reported as state and tried again. Errors are those of the
// set-up (the directory, another supervisor on it, a path too long for a
// socket), and an Envoy that can't be stopped. Run is called once.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("envoy of Gateway %s: %w", s.cfg.Gateway, err)
	}
	return nil
}

func (s *Supervisor) run(ctx context.Context) error {
	if err := s.cfg.check(); err != nil {
		return err
	}
	boot, err := Bootstrap(BootstrapOptions{
		Gateway:      s.cfg.Gateway,
		XDSSocket:    s.cfg.XDSSocket,
		AdminSocket:  s.path(adminSocket),
		BackendStats: s.cfg.BackendStats,
		Additions:    s.cfg.Additions,
	})
	if err != nil {
		return err
	}
	if err := privateDir(s.cfg.Dir); err != nil {
		return err
	}
	if s.lock, err = tryLock(s.path(lockFile)); err != nil {
		return fmt.Errorf("another Gatehouse runs it already (directory %s): %w", s.cfg.Dir, err)
	}
	defer s.lock.release()
	defer s.admin.release()
	stopTail, err := s.followLog()
	if err != nil {
		return err
	}
	defer stopTail()
	defer s.update(func(st *State) { *st = State{Phase: PhaseStopped, Restarts: st.Restarts, LastExit: st.LastExit} })

	hash := configHash(boot, s.cfg.Concurrency)
	p, err := s.takeOver(ctx, hash)
	if err != nil || ctx.Err() != nil && p == nil {
		return err
	}
	return s.keepRunning(ctx, p, boot, hash)
}

// keepRunning is the life of the supervisor: p, if not nil, is the process that
// was adopted.
func (s *Supervisor) keepRunning(ctx context.Context, p *process, boot []byte, hash string) error {
	var pause backoff
	for restarts := 0; ; restarts++ {
		if p == nil {
			p = s.start(boot, hash, restarts)
		}
		var lived time.Duration
		if p != nil {
			if !s.watch(ctx, p, hash) {
				return s.stop(p)
			}
			lived = p.exit.At.Sub(p.started)
			s.ended(p)
			p = nil
		}
		if !s.pause(ctx, pause.next(lived)) {
			s.forget()
			return nil
		}
	}
}

// start starts a process. A failure is a state like the end of a process.
func (s *Supervisor) start(boot []byte, hash string, restarts int) *process {
	p, err := s.spawn(boot, hash)
	now := time.Now()
	if err != nil {
		s.log.Error("envoy could not be started", "binary", s.cfg.Binary.Path, "error", err)
		s.update(func(st *State) {
			*st = State{Phase: PhaseBackoff, Since: now, Restarts: restarts, LastExit: &Exit{At: now, Code: -1, Err: err}}
		})
		return nil
	}
	s.log.Info("envoy started", "pid", p.pid, "version", s.cfg.Binary.Version)
	s.update(func(st *State) {
		*st = State{Phase: PhaseStarting, PID: p.pid, Since: p.started, Restarts: restarts, LastExit: st.LastExit}
	})
	return p
}

func (s *Supervisor) spawn(boot []byte, hash string) (*process, error) {
	// Made sure of each time: whoever has emptied the directory, say a cleaner
	// of temporary files, has not stopped us for good.
	if err := privateDir(s.cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.lock.retake(s.path(lockFile)); err != nil {
		return nil, fmt.Errorf("another Gatehouse has taken the directory %s: %w", s.cfg.Dir, err)
	}
	if err := s.cfg.Prepare(); err != nil {
		return nil, err
	}
	if err := writeFile(s.path(bootstrapFile), boot, 0o600); err != nil {
		return nil, err
	}
	s.admin.release()
	_ = os.Remove(s.path(adminSocket))
	log, err := openLog(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := s.tail.reopen(s.path(logFile)); err != nil {
		return nil, err
	}
	p, err := launch(envoyCommand(s.cfg, s.path(bootstrapFile), log))
	if err != nil {
		return nil, err
	}
	if err := s.remember(p, hash); err != nil {
		s.log.Warn("envoy would not be adopted by a later run", "pid", p.pid, "error", err)
	}
	if err := raiseFileLimit(p.pid); err != nil {
		s.log.Warn("the open file limit of envoy could not be raised", "pid", p.pid, "error", err)
	}
	return p, nil
}

// watch follows a process until it ends (true) or ctx does (false).
func (s *Supervisor) watch(ctx context.Context, p *process, hash string) bool {
	interval := probeFirst
	probe := time.NewTimer(interval)
	defer probe.Stop()
	restore := time.NewTicker(restoreInterval)
	defer restore.Stop()
	report := time.NewTicker(figuresInterval)
	defer report.Stop()
	var quiet silence
	var still standstill
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.done:
			return true
		case <-restore.C:
			s.restore(p, hash)
			continue
		case <-report.C:
			s.report(ctx)
			continue
		case <-probe.C:
		}
		interval = min(interval*5/4, probeSlow)
		// Fails at once when the process is gone, since its socket is too.
		word, err := s.admin.ready(ctx, probeTimeout)
		if err == nil {
			if quiet.heard() {
				s.log.Info("envoy answers again", "pid", p.pid)
			}
			still = standstill{}
			s.admin.hold()
			live := word == envoyLive
			if live {
				interval = probeLive
			}
			s.update(func(st *State) { st.Phase, st.Live = PhaseRunning, live })
		} else {
			s.unanswered(p, &quiet, &still, err)
		}
		probe.Reset(interval)
	}
}

// unanswered judges a process that has not answered: one that stands still is ended.
func (s *Supervisor) unanswered(p *process, quiet *silence, still *standstill, err error) {
	now := time.Now()
	used, runnable := mainThread(p.pid)
	switch lasted := still.look(now, used, runnable); {
	case lasted >= stillLimit:
		s.log.Error("envoy stands still and is ended; another one is started", "pid", p.pid, "error", err)
		p.stalled = true
		if err := p.signal(syscall.SIGKILL); err != nil {
			s.log.Error("envoy can't be ended", "pid", p.pid, "error", err)
		}
		*still = standstill{} // the system may take a while
	case lasted >= stillNoted:
		s.update(func(st *State) { st.Phase, st.Live = PhaseStalled, false })
	case quiet.missed(now):
		s.log.Warn("envoy works but has not answered for a while, so it takes no changes; "+
			"if it is not only short of CPU, end it with kill -9 and another one is started",
			"pid", p.pid, "since", quiet.since, "error", err)
	}
}

// ended records how a process has ended.
func (s *Supervisor) ended(p *process) {
	exit := p.exit
	exit.Stalled = p.stalled
	exit.Lines = s.lastLines()
	s.log.Error("envoy ended", "pid", p.pid, "reason", exit.String(), "lived", exit.At.Sub(p.started).Round(time.Millisecond))
	s.update(func(st *State) {
		*st = State{Phase: PhaseBackoff, Since: exit.At, Restarts: st.Restarts, LastExit: &exit}
	})
}

// pause waits before the next start; false means that ctx has ended.
func (s *Supervisor) pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	s.update(func(st *State) { st.Next = time.Now().Add(d) })
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Snapshot returns the current state.
func (s *Supervisor) Snapshot() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// update changes the state and tells OnState if that made a difference.
func (s *Supervisor) update(change func(*State)) {
	s.mu.Lock()
	before := s.state
	change(&s.state)
	after := s.state
	s.mu.Unlock()
	if after != before && s.cfg.OnState != nil {
		s.cfg.OnState(after)
	}
}

// Admin asks Envoy's admin interface, for example GET /config_dump, and returns
// the body of a 200 answer; anything else is an error.
func (s *Supervisor) Admin(ctx context.Context, method, path string) ([]byte, error) {
	body, err := s.admin.do(ctx, method, path)
	if err != nil {
		return nil, fmt.Errorf("gateway %s: %w", s.cfg.Gateway, err)
	}
	return body, nil
}

// Stats returns Envoy's counters and gauges whose names match the regex filter
// (RE2, anywhere in the name). Envoy keeps no statistics of clusters.
func (s *Supervisor) Stats(ctx context.Context, filter string) (map[string]uint64, error) {
	stats, err := s.admin.stats(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("gateway %s: %w", s.cfg.Gateway, err)
	}
	return stats, nil
}

// Hurry makes the drain that is under way, or the next one, end at once: whoever
// asks for it waits no longer for clients. It may be called at any time.
func (s *Supervisor) Hurry() { s.hurry() }

func (s *Supervisor) path(name string) string { return filepath.Join(s.cfg.Dir, name) }

// followLog hands Envoy's lines to Output until the returned function is called.
func (s *Supervisor) followLog() (stop func(), err error) {
	t, err := openTail(s.path(logFile), s.cfg.Output)
	if err != nil {
		return nil, err
	}
	s.tail = t
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := t.follow(ctx); err != nil {
			s.log.Warn("envoy's log can't be followed", "error", err)
		}
	})
	return func() { cancel(); wg.Wait() }, nil
}

func (s *Supervisor) lastLines() []string {
	if s.tail == nil { // StopLeftover follows no log
		return nil
	}
	if err := s.tail.read(); err != nil {
		s.log.Warn("envoy's log can't be read", "error", err)
	}
	return s.tail.last()
}
