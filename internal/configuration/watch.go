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

// Watch calls changed each time the file has got another content that is valid,
// and failed each time it has got one that isn't, until ctx ends. What is in force
// stays so until changed is called. Files are often links that are swapped, so
// the directory is watched.
//
// loaded is the content that is in force when it begins: what has changed since is a
// change.
func Watch(ctx context.Context, path string, loaded []byte, changed func(c *Configuration, text []byte), failed func(error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch configuration: %w", err)
	}
	last := loaded
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Events:
			quiet.Reset(settle)
		case err := <-watcher.Errors:
			failed(fmt.Errorf("watch configuration: %w", err))
		case <-quiet.C:
			text, err := os.ReadFile(path)
			if err != nil || bytes.Equal(text, last) {
				continue // a link is being replaced, or nothing has changed
			}
			last = text
			c, err := Parse(text)
			if err != nil {
				failed(fmt.Errorf("configuration %s: %w", path, err))
				continue
			}
			changed(c, text)
		}
	}
}
