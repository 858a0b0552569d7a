package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// nonroot is the user of the image: the number that distroless images have made
// usual, so that runAsNonRoot can be checked without a look into passwd.
const nonroot = "65532:65532"

// bin is where binaries are in the image.
const bin = "/usr/local/bin/"

type spec struct {
	name        string
	binaries    []string // on this host; the first is the entrypoint
	user        string
	authorities string
	labels      string
	versions    string // of binaries that don't tell it, and of our own
}

// contents returns the files of the image's layers, and what they are made for: first a
// layer with what the binaries need, then one for each of them, the first last, since it
// changes most.
func contents(s spec) (layers [][]file, arch string, err error) {
	base, err := system(s.authorities)
	if err != nil {
		return nil, "", err
	}
	layers = [][]file{base}
	for i, path := range s.binaries {
		b, err := inspect(path)
		if err != nil {
			return nil, "", err
		}
		if i > 0 && b.arch != arch {
			return nil, "", fmt.Errorf("%s is for %s, %s for %s", s.binaries[0], arch, path, b.arch)
		}
		arch = b.arch
		for _, library := range b.libraries {
			layers[0] = append(layers[0], file{path: library, source: library, mode: 0o755})
		}
		program := []file{{path: bin + filepath.Base(path), source: path, mode: 0o755}}
		layers = append(layers[:1], append([][]file{program}, layers[1:]...)...)
	}
	return layers, arch, nil
}

// build makes the image of these files.
func build(s spec, layers [][]file, arch string) (v1.Image, error) {
	all, err := pairs(s.labels)
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: arch,
		OS:           "linux",
		Created:      v1.Time{Time: time.Unix(0, 0).UTC()},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       s.user,
			Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=" + authorities},
			Entrypoint: []string{bin + filepath.Base(s.binaries[0])},
			WorkingDir: "/",
			Labels:     all,
		},
	})
	if err != nil {
		return nil, err
	}
	for _, files := range layers {
		layer, err := pack(files)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// authorities is where the image has them: Envoy and Go look there.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// system is what programs expect of a host, besides libraries.
func system(bundle string) ([]file, error) {
	files := []file{
		{path: "/etc/passwd", data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"), mode: 0o644},
		{path: "/etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n"), mode: 0o644},
		// Names in /etc/hosts are asked before DNS, as Kubernetes writes them there.
		{path: "/etc/nsswitch.conf", data: []byte("hosts: files dns\n"), mode: 0o644},
		{path: "/tmp/", mode: os.ModeDir | os.ModeSticky | 0o777},
	}
	if bundle != "" {
		data, err := os.ReadFile(bundle)
		if err != nil {
			return nil, fmt.Errorf("the system's certificate authorities: %w", err)
		}
		files = append(files, file{path: authorities, data: data, mode: 0o644})
	}
	return files, nil
}
