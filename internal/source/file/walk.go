package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// watcher is told the places whose changes matter. It is told a place before the walk
// looks at it, so that no change is missed in between. A walk that is done only once
// has none.
type watcher interface {
	// dir asks for everything in a directory.
	dir(path string)
	// name asks for one name in a directory: a symlink on the way, or a path that
	// may come back.
	name(dir, base string)
}

// candidate is a file to read.
type candidate struct {
	name string // as the user would name it
	root int
	info fs.FileInfo // nil for standard input
}

// tree is the outcome of a walk.
type tree struct {
	files  []candidate
	dirs   map[string]dir // by real path
	byName map[string]string
	seen   map[string]bool
	// faults are the paths that could not be walked. What was known from below
	// them stays.
	faults map[string]source.Problem
	lost   map[int]bool // roots that are missing
}

type dir struct {
	root int
	name string // as the user would name it
}

// realDir returns the real path of the directory that a file was found in.
func (t *tree) realDir(name string) string { return t.byName[filepath.Dir(name)] }

// knows reports whether something was a directory, or could not be told.
func (t *tree) knows(path, name string) bool {
	_, isDir := t.dirs[path]
	_, failed := t.faults[name]
	return isDir || failed
}

// covers reports whether the walk can't say that a file is gone.
func (t *tree) covers(name string, root int) bool {
	if t.lost[root] {
		return true
	}
	for path := range t.faults {
		if within(name, path) {
			return true
		}
	}
	return false
}

func within(name, dir string) bool {
	if name == dir || dir == "." && !filepath.IsAbs(name) {
		return true
	}
	return strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// walk finds the files below the roots, in order, each once whatever the number
// of names it has.
func (s *Source) walk(w watcher) *tree {
	t := &tree{
		dirs: map[string]dir{}, byName: map[string]string{}, seen: map[string]bool{},
		faults: map[string]source.Problem{}, lost: map[int]bool{},
	}
	for i, root := range s.paths {
		if root == stdinName {
			t.files = append(t.files, candidate{name: stdinName, root: i})
			continue
		}
		if w != nil {
			watchWay(w, root)
		}
		info, err := os.Stat(root)
		switch {
		case err != nil:
			t.lost[i] = true
			t.fault(root, err)
		case info.IsDir():
			t.walkDir(w, i, root)
		default:
			t.add(candidate{name: root, root: i, info: info})
		}
	}
	return t
}

func (t *tree) fault(name string, err error) {
	t.faults[name] = source.Problem{File: name, Reason: source.Unread, Message: readMessage(err)}
}

func (t *tree) walkDir(w watcher, root int, name string) {
	real, err := realPath(name)
	if err != nil {
		t.fault(name, err)
		return
	}
	if _, ok := t.dirs[real]; ok {
		return // reached before, perhaps through a symlink to a parent
	}
	t.dirs[real] = dir{root: root, name: name}
	t.byName[name] = real
	if w != nil {
		w.dir(real)
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		t.fault(name, err)
		return
	}
	for _, entry := range entries {
		if ignored(entry.Name()) {
			continue
		}
		path := filepath.Join(name, entry.Name())
		mode := entry.Type()
		link := mode&fs.ModeSymlink != 0
		if !link && !mode.IsDir() && !isManifest(path) {
			continue
		}
		if link && w != nil {
			watchWay(w, path)
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !link:
			// Gone since the directory was read.
		case err != nil:
			if isManifest(path) || !errors.Is(err, fs.ErrNotExist) {
				t.fault(path, err)
			}
		case info.IsDir():
			t.walkDir(w, root, path)
		case !isManifest(path):
		case info.Mode().IsRegular():
			t.add(candidate{name: path, root: root, info: info})
		default:
			t.fault(path, errNotRegular) // a pipe, or a link to a device: what the file had before stays
		}
	}
}

func (t *tree) add(c candidate) {
	real, err := realPath(c.name)
	if err != nil {
		t.fault(c.name, err)
		return
	}
	if t.seen[real] {
		return
	}
	t.seen[real] = true
	t.files = append(t.files, c)
}

func realPath(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// isManifest reports whether a file of a directory is one to read. A file that
// the user names is read whatever it is called.
func isManifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// ignored reports names that hold no manifests of the user's: hidden ones (such
// as ..data, whose files have visible names beside it) and editors' own files.
func ignored(base string) bool {
	return strings.HasPrefix(base, ".") ||
		strings.HasSuffix(base, "~") ||
		strings.HasSuffix(base, ".swp") ||
		strings.HasPrefix(base, "#") && strings.HasSuffix(base, "#") ||
		base == "4913" // what vim creates to see whether it may
}

// maxLinks is how many symlinks the kernel follows in one path.
const maxLinks = 40

// watchWay asks for every name on the way to a path whose change alters what the
// path means: symlinks, the path itself, and the first name that is missing.
func watchWay(w watcher, path string) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return
	}
	at, links := "/", 0
	steps := strings.Split(strings.Trim(abs, "/"), "/")
	for len(steps) > 0 {
		step := steps[0]
		steps = steps[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, step)
		info, err := os.Lstat(next)
		if err == nil && info.Mode()&fs.ModeSymlink == 0 && len(steps) > 0 {
			at = next // an ordinary directory
			continue
		}
		w.name(at, step)
		target, linkErr := os.Readlink(next) // after asking, so that a swap is seen
		if linkErr != nil {
			if len(steps) == 0 || err != nil {
				return
			}
			at = next
			continue
		}
		if links++; links > maxLinks {
			return
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		steps = append(strings.Split(target, "/"), steps...)
	}
}
