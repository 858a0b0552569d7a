package proxy

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
)

// heldSocket leads to the admin interface of a running Envoy, even if the file
// of its socket is deleted: nobody but Envoy could make that anew, and without
// the interface it could not be drained.
type heldSocket struct {
	path string

	mu   sync.RWMutex
	file *os.File // refers to the socket itself; nil if none is held
}

// hold keeps a way to the socket that is at the path now.
func (h *heldSocket) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		// Without it, the path must do.
		h.file, _ = openSocket(h.path)
	}
}

// release is called when the process ends, or another one begins.
func (h *heldSocket) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		_ = h.file.Close()
		h.file = nil
	}
}

func (h *heldSocket) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", h.path)
	if !errors.Is(err, fs.ErrNotExist) {
		return conn, err
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.file == nil {
		return nil, err
	}
	return d.DialContext(ctx, "unix", socketPath(h.file))
}
