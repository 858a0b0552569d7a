package terminal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may have, as in Linux.
const maxLinks = 40

// descent goes down a path, each step from the directory that was checked before: nobody
// can put another one in its place in between. Whoever may write to a directory decides
// what is below it.
type descent struct {
	create bool // what is missing
	links  int
}

// trusted opens a directory that nobody but root and the user can replace, with all
// above it. It returns the directory's path without symbolic links.
func (d *descent) trusted(path string) (dir *os.File, real string, err error) {
	fd, err := unix.Open("/", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", &os.PathError{Op: "open", Path: "/", Err: err}
	}
	real = "/"
	rest := parts(path)
	for {
		if err := check(fd, real); err != nil {
			_ = unix.Close(fd)
			return nil, "", err
		}
		if len(rest) == 0 {
			return os.NewFile(uintptr(fd), real), real, nil
		}
		name := rest[0]
		rest = rest[1:]
		next, target, err := d.step(fd, real, name)
		_ = unix.Close(fd)
		if err != nil {
			return nil, "", err
		}
		if target == "" {
			fd, real = next, filepath.Join(real, name)
			continue
		}
		// Above the link everything is as it was; it is checked once more.
		if !filepath.IsAbs(target) {
			target = filepath.Join(real, target)
		}
		return d.trusted(filepath.Join(append([]string{target}, rest...)...))
	}
}

func parts(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(r rune) bool { return r == filepath.Separator })
}

// step opens what is in a directory, or reads where a symbolic link leads.
func (d *descent) step(fd int, at, name string) (next int, target string, err error) {
	whole := filepath.Join(at, name)
	if d.create {
		if err := unix.Mkdirat(fd, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			// Where it is there already, the failure may be another one.
			if unix.Faccessat(fd, name, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) != nil {
				return 0, "", &os.PathError{Op: "mkdir", Path: whole, Err: err}
			}
		}
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, "", &os.PathError{Op: "lstat", Path: whole, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if err := checkOwner(&st, whole); err != nil {
			return 0, "", err
		}
		if d.links++; d.links > maxLinks {
			return 0, "", &os.PathError{Op: "readlink", Path: whole, Err: unix.ELOOP}
		}
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, name, buffer)
		if err != nil {
			return 0, "", &os.PathError{Op: "readlink", Path: whole, Err: err}
		}
		return 0, string(buffer[:n]), nil
	}
	next, err = unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, "", &os.PathError{Op: "open", Path: whole, Err: err}
	}
	return next, "", nil
}

// check refuses a directory in which others can replace what is ours: its owner can, and
// whoever may write there, unless it is sticky, as /tmp is.
func check(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := checkOwner(&st, path); err != nil {
		return err
	}
	writable := st.Mode&unix.S_IWOTH != 0 || st.Mode&unix.S_IWGRP != 0 && !isPrivateGroup(st.Gid)
	if writable && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("other users may write to %s, and so could replace what is below it: name another directory with --state-dir, or run \"chmod go-w %s\"", path, path)
	}
	return nil
}

func checkOwner(st *unix.Stat_t, path string) error {
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user id %d, who could replace what is below it: name another directory with --state-dir", path, st.Uid)
	}
	return nil
}

// isPrivateGroup reports whether a group is root's, or the user's own by the custom that
// each user has one of the same number.
func isPrivateGroup(gid uint32) bool { return gid == 0 || int(gid) == os.Geteuid() }
