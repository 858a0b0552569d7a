package configuration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be quiet: editors and the kubelet write in
// several steps.
const settle = 200 * time.Millisecond

// Watched is told what becomes of a file.
type Watched struct {
	// Changed is told of another content that is valid. What is in force stays so until then.
	Changed func(c *Configuration, text []byte)
	// Refused is told of one that isn't.
	Refused func(error)
	// Missed is told that a change may not have been noticed. The file is read again then.
	Missed func(error)
}

// Watch watches a file until ctx ends. Files are often links that are swapped, so the
// directory is watched.
//
// loaded is the content that is in force when it begins: what has changed since is a
// change.
func Watch(ctx context.Context, path string, loaded []byte, w Watched) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	w.follow(ctx, path, loaded, watcher.Events, watcher.Errors)
	return nil
}

// follow reads a file anew after events.
func (w Watched) follow(ctx context.Context, path string, last []byte, events <-chan fsnotify.Event, failures <-chan error) {
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			quiet.Reset(settle)
		case err := <-failures: // there were more events than the kernel keeps, say
			w.Missed(fmt.Errorf("watch configuration: %w", err))
			quiet.Reset(settle)
		case <-quiet.C:
			text, err := os.ReadFile(path)
			if err != nil || bytes.Equal(text, last) {
				continue // a link is being replaced, or nothing has changed
			}
			last = text
			c, err := Parse(text)
			if err != nil {
				w.Refused(fmt.Errorf("configuration %s: %w", path, err))
				continue
			}
			w.Changed(c, text)
		}
	}
}
