package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// maxFileSize bounds what is read of one file: far above any manifest, far below
// what would hurt.
const maxFileSize = 64 << 20

// file is one input as it was last read.
type file struct {
	name      string // as the user would name it
	root      int    // index of the path it was found under
	hash      uint64
	stamp     stamp
	docs      []*document
	lastValid *document // objects kept although their document is broken; or nil
	unread    *source.Problem
	// emptied is when the file was first seen empty; nil when it isn't, or when
	// its objects have been given up since.
	emptied *time.Time
}

func (f *file) compare(o *file) int {
	if f.root != o.root {
		return f.root - o.root
	}
	return compareNames(f.name, o.name)
}

func (f *file) definitions() []*definition {
	var defs []*definition
	for _, doc := range f.docs {
		defs = append(defs, doc.definitions()...)
	}
	if f.lastValid != nil {
		defs = append(defs, f.lastValid.definitions()...)
	}
	return defs
}

// stamp is what tells an unchanged file without reading it.
type stamp struct {
	size     int64
	modified int64 // Unix time in nanoseconds
	inode    uint64
	// settled is false for a file that was modified just before it was read: it may
	// have been modified again within the same tick of its clock.
	settled bool
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{
		size: info.Size(), modified: info.ModTime().UnixNano(),
		settled: time.Since(info.ModTime()) > 2*time.Second,
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// settledAs reports whether a file with this info is the one that was read.
func (s stamp) settledAs(info fs.FileInfo) bool {
	now := stampOf(info)
	return now.size == s.size && now.inode == s.inode && now.modified == s.modified && s.settled
}

// compareNames sorts names directory by directory: a/b.yaml before a-b.yaml.
func compareNames(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case os.IsPathSeparator(a[i]):
			return -1
		case os.IsPathSeparator(b[i]):
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

var (
	errTooLarge   = fmt.Errorf("larger than %d MiB: split it", maxFileSize>>20)
	errNotRegular = errors.New("not a regular file or directory: pipe it to standard input and name it \"-\"")
)

// load reads one input whole.
func (s *state) load(name string) ([]byte, stamp, error) {
	if name == stdinName {
		text, err := s.readStdin()
		return text, stamp{}, err
	}
	// Opening a pipe would wait for somebody to write to it.
	if info, err := os.Stat(name); err != nil {
		return nil, stamp{}, err
	} else if !info.Mode().IsRegular() {
		return nil, stamp{}, errNotRegular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, stamp{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	st := stampOf(info)
	text, err := readBounded(f, info.Size())
	return text, st, err
}

// readBounded reads all that there is, which is about so many bytes.
func readBounded(r io.Reader, size int64) ([]byte, error) {
	if size > maxFileSize {
		return nil, errTooLarge
	}
	var text bytes.Buffer
	text.Grow(int(size) + bytes.MinRead)
	if _, err := text.ReadFrom(io.LimitReader(r, maxFileSize+1)); err != nil {
		return nil, err
	}
	if text.Len() > maxFileSize {
		return nil, errTooLarge
	}
	return text.Bytes(), nil
}

// readMessage drops the path from a system error, since it is shown beside it.
func readMessage(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return "can't be read: " + pathErr.Err.Error()
	}
	return "can't be read: " + err.Error()
}
