package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// maxFileSize bounds what is read of one file: far above any manifest, far below
// what would hurt.
const maxFileSize = 64 << 20

// emptyGrace is how long an emptied file keeps its objects: programs that write
// in place truncate first, and may take their time to write.
const emptyGrace = 500 * time.Millisecond

// file is one input as it was last read.
type file struct {
	name    string // as the user would name it
	root    int    // index of the path it was found under
	sortKey string // name, made to sort directory by directory
	real    string // what name resolves to, for telling two names of one file
	hash    uint64
	stamp   stamp
	docs    []*document
	held    *document // objects kept although their document is broken; or nil
	unread  *source.Problem
	// emptied is when the file was first seen empty; zero when it isn't, or when
	// its objects have been given up since.
	emptied time.Time
}

func (f *file) compare(o *file) int {
	if f.root != o.root {
		return f.root - o.root
	}
	return strings.Compare(f.sortKey, o.sortKey)
}

func (f *file) definitions() []*definition {
	var defs []*definition
	for _, doc := range f.docs {
		defs = append(defs, doc.defs...)
	}
	if f.held != nil {
		defs = append(defs, f.held.defs...)
	}
	return defs
}

// stamp is what tells an unchanged file without reading it.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
	readAt   time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime(), readAt: time.Now()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// settledAs reports whether a file with this info is the one that was read. A file
// that was modified just before it was read may have been modified again within
// the same tick of its clock.
func (s stamp) settledAs(info fs.FileInfo) bool {
	now := stampOf(info)
	return now.size == s.size && now.inode == s.inode && now.modified.Equal(s.modified) &&
		s.readAt.Sub(s.modified) > 2*time.Second
}

// sortKey makes names sort directory by directory: a/b.yaml before a-b.yaml.
func sortKey(name string) string {
	return strings.ReplaceAll(filepath.ToSlash(name), "/", "\x00")
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
	text, err := readBounded(f)
	return text, st, err
}

func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileSize {
		return nil, errTooLarge
	}
	return text, nil
}

// readMessage drops the path from a system error, since it is shown beside it.
func readMessage(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return "can't be read: " + pathErr.Err.Error()
	}
	return "can't be read: " + err.Error()
}
