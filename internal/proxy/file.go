package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errLocked is returned by tryLock when somebody else holds the lock.
var errLocked = errors.New("locked by another process")

// lock is an advisory lock on a file that ends with this process, however it
// ends.
type lock struct{ file *os.File }

func tryLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &lock{f}, nil
}

func (l *lock) release() { _ = l.file.Close() }

// retake takes the lock again if the file at the path is not the locked one any
// more: it was deleted, and another process would lock a new one.
func (l *lock) retake(path string) error {
	held, err := l.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(path); err == nil && os.SameFile(held, there) {
		return nil
	}
	again, err := tryLock(path)
	if err != nil {
		return err
	}
	l.release()
	l.file = again.file
	return nil
}

// lockWait takes the lock, however long that takes; onWait is called once if
// it is not free at once.
func lockWait(ctx context.Context, path string, onWait func()) (*lock, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		if onWait != nil {
			onWait()
			onWait = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}

// writeFile replaces a file as a whole: a reader, or the next run after a
// crash, sees the old content or the new. What is right already is left alone,
// which works on a full disk too.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if isFile(path, content, mode) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

func isFile(path string, content []byte, mode os.FileMode) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode || info.Size() != int64(len(content)) {
		return false
	}
	there, err := os.ReadFile(path)
	return err == nil && bytes.Equal(there, content)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
