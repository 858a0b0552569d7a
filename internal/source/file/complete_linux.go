package file

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// completions tells of files what fsnotify, which is the same on all systems, does not: that
// one was closed after writing. Nothing depends on it but how soon a file is read.
type completions struct {
	fd     int
	events *os.File
	out    chan completion
	stop   chan struct{}

	mu   sync.Mutex
	dirs map[int32]string // by watch descriptor
	ids  map[string]int32
}

// newCompletions returns nil if the system has no inotify instance left.
func newCompletions() *completions {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	c := &completions{
		fd: fd, events: os.NewFile(uintptr(fd), "inotify"),
		out: make(chan completion), stop: make(chan struct{}),
		dirs: map[int32]string{}, ids: map[string]int32{},
	}
	go c.read()
	return c
}

func (c *completions) close() {
	if c != nil {
		close(c.stop)
		_ = c.events.Close()
	}
}

// told is where completions come from; nil if there are none.
func (c *completions) told() <-chan completion {
	if c == nil {
		return nil
	}
	return c.out
}

const (
	completing = unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO
	spoiling   = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM
)

// add watches a directory. One that can't be watched has no complete files.
func (c *completions) add(dir string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, err := unix.InotifyAddWatch(c.fd, dir, completing|spoiling|unix.IN_ONLYDIR); err == nil {
		c.dirs[int32(id)], c.ids[dir] = dir, int32(id)
	}
}

// keep ends the watches of directories that are not wanted.
func (c *completions) keep(wanted map[string]bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for dir, id := range c.ids {
		if wanted[dir] {
			continue
		}
		delete(c.ids, dir)
		if c.dirs[id] == dir { // and not of another name of the same directory
			delete(c.dirs, id)
			_, _ = unix.InotifyRmWatch(c.fd, uint32(id)) // gone already, as a rule
		}
	}
}

func (c *completions) dir(id int32) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, ok := c.dirs[id]
	return dir, ok
}

// read hands over events until the file is closed.
func (c *completions) read() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.events.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			id := int32(binary.NativeEndian.Uint32(rest))
			mask := binary.NativeEndian.Uint32(rest[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:end], []byte{0})
			rest = rest[end:]
			dir, ok := c.dir(id)
			if !ok || len(name) == 0 {
				continue
			}
			select {
			case c.out <- completion{filepath.Join(dir, string(name)), mask&completing != 0}:
			case <-c.stop:
				return
			}
		}
	}
}
