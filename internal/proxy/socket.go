package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// socketInterval is how often a Socket is looked for.
const socketInterval = 2 * time.Second

// Socket listens on a Unix socket in a private directory and keeps its path
// alive: cleaners of temporary files delete sockets under running programs,
// whose listeners are then open and can't be reached by anybody.
type Socket struct {
	path string
	log  *slog.Logger

	ending chan struct{}
	ended  chan struct{}

	mu     sync.Mutex
	inner  *net.UnixListener
	file   os.FileInfo // what inner is bound to
	closed bool
	conns  map[*socketConn]struct{} // that are open
}

var _ net.Listener = (*Socket)(nil)

// ListenSocket listens at an absolute path, in place of whatever is there. The
// directory is created if need be, with mode 0700. If the socket is deleted, it
// is back within some seconds. Close ends it.
func ListenSocket(path string, log *slog.Logger) (*Socket, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	s := &Socket{path: path, log: log, ending: make(chan struct{}), ended: make(chan struct{}), conns: map[*socketConn]struct{}{}}
	if err := s.listen(); err != nil {
		return nil, err
	}
	go s.keep()
	return s, nil
}

// listen binds the path anew and gives up the socket that was there before. Who
// is connected to that one stays so. s.mu is held, or nobody else knows s.
func (s *Socket) listen() error {
	if err := privateDir(filepath.Dir(s.path)); err != nil {
		return err
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		return err
	}
	// The path may be another socket's when this one is closed.
	inner.SetUnlinkOnClose(false)
	file, err := os.Lstat(s.path)
	if err != nil {
		_ = inner.Close()
		return err
	}
	if s.inner != nil {
		_ = s.inner.Close()
	}
	s.inner, s.file = inner, file
	return nil
}

// Restore makes the socket anew if it isn't at its path any more. It is for
// those who can't wait until that is noticed.
func (s *Socket) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("the Unix socket %s: %w", s.path, net.ErrClosed)
	}
	if s.bound() {
		return nil
	}
	if err := s.listen(); err != nil {
		return fmt.Errorf("the Unix socket %s was deleted and can't be made anew: %w", s.path, err)
	}
	s.log.Warn("a socket was deleted and is made anew; keep cleaners of temporary files away from it", "socket", s.path)
	return nil
}

// bound says whether the path leads to us; s.mu is held.
func (s *Socket) bound() bool {
	file, err := os.Lstat(s.path)
	return err == nil && os.SameFile(file, s.file)
}

func (s *Socket) keep() {
	defer close(s.ended)
	tick := time.NewTicker(socketInterval)
	defer tick.Stop()
	failed := false
	for {
		select {
		case <-s.ending:
			return
		case <-tick.C:
		}
		err := s.Restore()
		if err != nil && !failed && !errors.Is(err, net.ErrClosed) {
			s.log.Error("nobody can connect; trying again", "error", err)
		}
		failed = err != nil
	}
}

// Accept waits for the next connection, to whichever socket is at the path.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		s.mu.Lock()
		inner := s.inner
		s.mu.Unlock()
		conn, err := inner.AcceptUnix()
		if err == nil {
			return s.keepConn(conn), nil
		}
		if !s.replaced(inner) {
			return nil, err
		}
	}
}

func (s *Socket) replaced(inner *net.UnixListener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.inner != inner
}

// Addr returns the path.
func (s *Socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close ends Accept and removes the socket.
func (s *Socket) Close() error {
	err := s.close()
	<-s.ended
	return err
}

func (s *Socket) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.ending)
	if s.bound() {
		_ = os.Remove(s.path)
	}
	return s.inner.Close()
}
