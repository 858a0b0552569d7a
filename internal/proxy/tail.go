package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// logLimit is the size beyond which the log file is emptied. Envoy writes
	// to it directly (a pipe to us would break when we die), so nobody else
	// can bound it.
	logLimit = 16 << 20
	// maxLine bounds a line that is kept in memory before its end is seen.
	maxLine = 64 << 10
	// lastLines is how many lines are remembered to explain an exit.
	lastLines = 20
	// tailInterval is how often the file is looked at. An inotify instance
	// for each Gateway would soon meet the per-user limit of 128.
	tailInterval = 100 * time.Millisecond
)

// tail follows the log file of one Envoy from where it ended when the tail was
// opened, and hands on each line once.
type tail struct {
	emit func(Line)

	mu      sync.Mutex // held while emit runs, so lines come in order
	file    *os.File
	offset  int64
	partial []byte
	recent  []string
}

func openTail(path string, emit func(Line)) (*tail, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &tail{file: f, offset: end, emit: emit}, nil
}

// reopen goes on with the file at path if that is another one by now, because
// the first was deleted.
func (t *tail) reopen(path string) error {
	if there, err := os.Lstat(path); err == nil && t.at(there) {
		return nil
	}
	next, err := openTail(path, t.emit)
	if err != nil {
		return err
	}
	if err := t.read(); err != nil {
		_ = next.file.Close()
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.file.Close()
	t.file, t.offset, t.partial = next.file, next.offset, nil
	return nil
}

func (t *tail) at(there os.FileInfo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := t.file.Stat()
	return err == nil && os.SameFile(info, there)
}

func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.file.Close()
}

// follow reads until ctx ends, then reads what is left and closes the file.
func (t *tail) follow(ctx context.Context) error {
	defer t.close()
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return t.read()
		case <-tick.C:
			if err := t.read(); err != nil {
				return err
			}
		}
	}
}

// read hands on everything that is in the file by now.
func (t *tail) read() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	buf := make([]byte, 32<<10)
	for {
		n, err := t.file.ReadAt(buf, t.offset)
		t.offset += int64(n)
		t.take(buf[:n])
		if errors.Is(err, io.EOF) {
			return t.truncate()
		}
		if err != nil {
			return fmt.Errorf("read the log of Envoy: %w", err)
		}
	}
}

func (t *tail) take(b []byte) {
	for {
		head, rest, found := bytes.Cut(b, []byte("\n"))
		t.partial = append(t.partial, head...)
		if !found && len(t.partial) < maxLine {
			return
		}
		s := string(t.partial)
		t.partial = t.partial[:0]
		t.remember(s)
		t.emit(parseLine(s))
		if !found {
			return
		}
		b = rest
	}
}

func (t *tail) remember(s string) {
	if len(t.recent) == lastLines {
		t.recent = slices.Delete(t.recent, 0, 1)
	}
	t.recent = append(t.recent, s)
}

// truncate empties a file that has grown too long or restarts at its begin if
// somebody else has emptied it. Envoy writes with O_APPEND, so it goes on at
// the new end. A line written in the instant between the last read and the
// truncation is lost: accepted, for a log.
func (t *tail) truncate() error {
	info, err := t.file.Stat()
	if err != nil {
		return fmt.Errorf("the log of Envoy: %w", err)
	}
	if info.Size() < t.offset {
		t.offset = 0
		return nil
	}
	if info.Size() <= logLimit {
		return nil
	}
	if err := t.file.Truncate(0); err != nil {
		return fmt.Errorf("empty the log of Envoy: %w", err)
	}
	t.offset = 0
	return nil
}

// last returns the latest lines and forgets them: those of the next process
// are not mixed with them.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.recent
	t.recent = nil
	return lines
}
