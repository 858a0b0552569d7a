package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotFound is returned by Find when no place has an Envoy. Its text names
// the three ways to get one.
var ErrNotFound = errors.New("no Envoy found: " +
	"run `gatehouse envoy install`, or put Envoy " + SupportedVersions + " on the PATH, " +
	"or name a binary with --envoy PATH (or GATEHOUSE_ENVOY)")

// Binary is an Envoy that runs on this machine and has a supported version.
type Binary struct {
	// Path is absolute.
	Path string
	// Version is the release, for example "1.40.0".
	Version string
	// From is the place that named it: "--envoy", "GATEHOUSE_ENVOY",
	// "cache" or "PATH".
	From string
}

// FindOptions say where Find looks.
type FindOptions struct {
	// Explicit is the value of --envoy; empty if not given.
	Explicit string
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Find returns the Envoy to run. The first of these that names one wins:
// --envoy, GATEHOUSE_ENVOY, the cache of `gatehouse envoy install`, PATH.
//
// The first that names one is also the last that is tried: falling through
// from a binary that is missing, broken or too old to another one would run
// something that the user did not choose.
func Find(ctx context.Context, o FindOptions) (Binary, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if o.Explicit != "" {
		return named(ctx, o.Explicit, "--envoy")
	}
	if path := getenv("GATEHOUSE_ENVOY"); path != "" {
		return named(ctx, path, "GATEHOUSE_ENVOY")
	}
	// Without a home directory there is no cache, which only matters to
	// somebody who installs.
	if root, err := cacheRoot(getenv); err == nil {
		c := cacheAt(root)
		switch err := c.checkSize(); {
		case err == nil:
			return inspect(ctx, c.binary(), "cache")
		case !errors.Is(err, fs.ErrNotExist):
			return Binary{}, fmt.Errorf("the installed Envoy is damaged: %w: run `gatehouse envoy install` to mend it", err)
		}
	}
	if path, err := lookPath(getenv("PATH")); err == nil {
		return inspect(ctx, path, "PATH")
	}
	return Binary{}, ErrNotFound
}

// named checks a path that a person gave.
func named(ctx context.Context, path, from string) (Binary, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Binary{}, fmt.Errorf("%s names %q: %w", from, path, err)
	}
	if err := executable(abs); err != nil {
		return Binary{}, fmt.Errorf("%s names no Envoy binary: %w", from, err)
	}
	return inspect(ctx, abs, from)
}

// executable says why a file can't be run.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable (chmod +x it)", path)
	}
	return nil
}

// lookPath finds envoy in a PATH list. exec.LookPath reads the process's own
// environment, which is not what a caller's Getenv may say.
func lookPath(list string) (string, error) {
	for _, dir := range filepath.SplitList(list) {
		// An empty or relative entry means the working directory, from which
		// nothing is run by accident (the rule of os/exec).
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, "envoy"); executable(path) == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
