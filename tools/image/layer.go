package main

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// file is one of a layer: its content is data, or that of the host's file
// source. A path that ends with a slash is a directory.
type file struct {
	path   string
	source string
	data   []byte
	mode   os.FileMode
}

// pack makes a layer of files and of the directories above them. Nothing of
// this host but names and contents gets in: no owner, no time.
func pack(files []file) (v1.Layer, error) {
	all := map[string]file{}
	for _, f := range files {
		all[f.path] = f
		for dir := path.Dir(strings.TrimSuffix(f.path, "/")); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir+"/"]; !ok {
				all[dir+"/"] = file{path: dir + "/", mode: os.ModeDir | 0o755}
			}
		}
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f := all[key]
		data := f.data
		if f.source != "" {
			var err error
			if data, err = os.ReadFile(f.source); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     strings.TrimPrefix(f.path, "/"),
			Size:     int64(len(data)),
			Mode:     int64(f.mode.Perm()),
			ModTime:  time.Unix(0, 0),
			Format:   tar.FormatUSTAR,
		}
		if f.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		if f.mode&os.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	// Compressing is most of the work: once for the digest and the archive.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithCompressedCaching)
}
