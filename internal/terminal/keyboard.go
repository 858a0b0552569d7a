package terminal

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// keyboard reads keys from a terminal. It waits without reading, since a job that reads in
// the background is stopped.
type keyboard struct {
	in   *os.File
	keys chan keystroke

	mu    sync.Mutex // held while it reads
	pause bool
}

func newKeyboard(in *os.File) *keyboard { return &keyboard{in: in, keys: make(chan keystroke)} }

const (
	// escapeDelay is how long the rest of a key may take, over a slow connection.
	escapeDelay = 50 * time.Millisecond
	// keyboardCheck is how often it looks whether it is still wanted.
	keyboardCheck = 500 * time.Millisecond
)

// run sends keys until done is closed.
func (k *keyboard) run(done <-chan struct{}) {
	var d decoder
	for {
		patience := keyboardCheck
		if d.waits() {
			patience = escapeDelay
		}
		ready := readable(int(k.in.Fd()), patience)
		var keys []keystroke
		switch input := k.read(ready); {
		case len(input) > 0:
			keys = d.feed(input)
		case ready: // nothing is there to read, or it is for others: the terminal is gone, say
			select {
			case <-done:
			case <-time.After(keyboardCheck):
			}
		default:
			keys = d.flush()
		}
		for _, key := range keys {
			select {
			case <-done:
				return
			case k.keys <- key:
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// read returns what there is, if it is for this process. It does not wait.
func (k *keyboard) read(ready bool) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !ready || k.pause || !foreground(k.in) {
		return nil
	}
	buf := make([]byte, 256)
	n, err := unix.Read(int(k.in.Fd()), buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// paused makes it leave to others what is typed, or not any more.
func (k *keyboard) paused(pause bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pause = pause
}

// readable waits until there is something to read.
func readable(fd int, patience time.Duration) bool {
	var set unix.FdSet
	set.Set(fd)
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	n, err := unix.Select(fd+1, &set, nil, nil, &timeout)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return true // reading tells
	}
	return err == nil && n > 0
}
