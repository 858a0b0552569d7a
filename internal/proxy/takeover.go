package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"
)

// adoptTimeout bounds the wait for the admin interface of a process that is to
// be adopted: its main thread may be busy with a large configuration.
const adoptTimeout = 5 * time.Second

// takeOver returns the process that an earlier supervisor has left, if it is
// just what would be started now. One that isn't is drained and stopped.
func (s *Supervisor) takeOver(ctx context.Context, hash string) (*process, error) {
	p, r := s.leftover()
	if p == nil {
		return nil, s.evict(ctx)
	}
	word, misfit := s.misfit(ctx, r, hash)
	if misfit != "" {
		s.log.Info("envoy of an earlier run is replaced", "pid", p.pid, "because", misfit)
		s.update(func(st *State) { *st = State{Phase: PhaseDraining, PID: p.pid, Since: p.started, Adopted: true} })
		return nil, s.stop(p)
	}
	if _, err := s.admin.do(ctx, http.MethodPost, "/logging?level="+url.QueryEscape(s.cfg.LogLevel)); err != nil {
		s.log.Warn("the log level of envoy can't be set", "error", err)
	}
	s.log.Info("envoy adopted", "pid", p.pid, "version", r.Version, "since", p.started)
	s.update(func(st *State) {
		*st = State{Phase: PhaseRunning, Live: word == envoyLive, PID: p.pid, Since: p.started, Adopted: true}
	})
	return p, nil
}

// StopLeftover drains and stops the Envoy that an earlier run has left in
// cfg.Dir, if there is one. It is for a Gateway that was deleted while no
// control plane ran, so that no supervisor comes to take the process over. The
// end of ctx ends the drain, as Hurry does. Of cfg, only Gateway, Dir,
// DrainTimeout and Log matter.
func StopLeftover(ctx context.Context, cfg Config) error {
	s := New(cfg)
	defer context.AfterFunc(ctx, s.Hurry)()
	err := s.stopLeftover(ctx)
	if err != nil {
		return fmt.Errorf("envoy of Gateway %s: stop what an earlier run has left: %w", cfg.Gateway, err)
	}
	return nil
}

func (s *Supervisor) stopLeftover(ctx context.Context) error {
	if err := s.cfg.check(); err != nil {
		return err
	}
	lock, err := tryLock(s.path(lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no directory, no Envoy
	}
	if err != nil {
		return fmt.Errorf("directory %s: %w", s.cfg.Dir, err)
	}
	defer lock.release()
	if p, _ := s.leftover(); p != nil {
		return s.stop(p)
	}
	return s.evict(ctx)
}

// leftover returns the recorded process and its record; nil if it has ended or
// there is no usable record.
func (s *Supervisor) leftover() (*process, *record) {
	r, err := readRecord(s.cfg.Dir)
	if err != nil {
		s.log.Warn("the record of the last run can't be read", "error", err)
	}
	if r == nil {
		return nil, nil
	}
	p, err := attach(r.PID, r.Identity, r.Started)
	if err != nil {
		return nil, nil
	}
	return p, r
}

// misfit says why the recorded process can't be adopted; empty if it can. word
// is its answer to /ready.
func (s *Supervisor) misfit(ctx context.Context, r *record, hash string) (word, reason string) {
	switch {
	case r.Binary != s.cfg.Binary.Path || r.Version != s.cfg.Binary.Version:
		return "", fmt.Sprintf("it is Envoy %s from %s", r.Version, r.Binary)
	case r.Config != hash:
		return "", "it was started with another bootstrap or concurrency"
	case r.Draining:
		return "", "it is draining"
	}
	word, err := s.admin.ready(ctx, adoptTimeout)
	switch {
	case err != nil:
		return "", err.Error()
	case word == envoyDraining:
		// A drain can't be taken back in full.
		return "", "it is draining"
	}
	return word, ""
}

// evict stops an Envoy that serves this directory though no usable record says
// so: its supervisor died between start and record, or the record was lost.
func (s *Supervisor) evict(ctx context.Context) error {
	// An end of ctx must not make a running Envoy look like none.
	ctx = context.WithoutCancel(ctx)
	if _, err := s.admin.ready(ctx, adoptTimeout); err != nil {
		// The usual case: nobody is there.
		s.forget()
		return nil
	}
	s.log.Info("an unrecorded envoy is stopped", "admin", s.path(adminSocket))
	p := s.answering(ctx)
	s.drain(p)
	// The call itself may fail, as the answer races with the end.
	_, _ = s.admin.do(ctx, http.MethodPost, "/quitquitquit")
	deadline := time.Now().Add(killTimeout)
	for {
		// A process that answers no more may hold its ports for a while yet.
		if _, err := s.admin.ready(ctx, probeTimeout); err != nil && (p == nil || p.wait(time.Until(deadline))) {
			s.forget()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("an Envoy of unknown origin answers on %s and does not stop: end it by hand", s.path(adminSocket))
		}
		<-time.After(probeSlow)
	}
}

// answering returns the process behind the admin socket; nil where the system doesn't
// tell.
func (s *Supervisor) answering(ctx context.Context) *process {
	conn, err := s.admin.dial(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	pid := peer(conn)
	identity, err := processIdentity(pid)
	if err != nil {
		return nil
	}
	p, err := attach(pid, identity, time.Time{})
	if err != nil {
		return nil
	}
	return p
}

// remember writes the record by which the next supervisor finds p.
func (s *Supervisor) remember(p *process, hash string) error {
	identity, err := processIdentity(p.pid)
	if err != nil {
		return err
	}
	r := record{
		PID:      p.pid,
		Identity: identity,
		Started:  p.started,
		Binary:   s.cfg.Binary.Path,
		Version:  s.cfg.Binary.Version,
		Config:   hash,
	}
	return r.write(s.cfg.Dir)
}

// markDraining keeps the next supervisor from adopting a process that we have
// begun to drain, should we not live to end it.
func (s *Supervisor) markDraining() {
	r, err := readRecord(s.cfg.Dir)
	if err == nil && r != nil {
		r.Draining = true
		err = r.write(s.cfg.Dir)
	}
	if err != nil {
		s.log.Warn("the drain of envoy can't be recorded", "error", err)
	}
}

// forget removes what only a running process has.
func (s *Supervisor) forget() {
	_ = os.Remove(s.path(recordFile))
	_ = os.Remove(s.path(adminSocket))
}

// privateDir makes sure that nobody else can reach or has prepared what is in
// the directory: whoever can write there decides what runs as us.
func privateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory (a symbolic link is not accepted)", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user id %d, not to %d which runs Gatehouse: remove it or choose another directory",
			path, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(path, 0o700)
	}
	return nil
}
