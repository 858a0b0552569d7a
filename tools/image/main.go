package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "image:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var (
		s      spec
		output string
		sbom   string
		push   bool
	)
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: image --name NAME:TAG (--output FILE | --push) [flags] BINARY...")
		flags.PrintDefaults()
	}
	flags.StringVar(&s.name, "name", "", "the image's name and tag")
	flags.StringVar(&output, "output", "", "docker archive to write, for docker load, podman load and ctr images import")
	flags.BoolVar(&push, "push", false, "push to the registry of --name, with the credentials of docker or podman")
	flags.StringVar(&s.user, "user", nonroot, "user and group that the image runs as")
	flags.StringVar(&s.authorities, "authorities", "/etc/ssl/certs/ca-certificates.crt", "certificate authorities to pack; empty for none")
	flags.StringVar(&s.labels, "labels", "", "labels, as name=value,name=value")
	flags.StringVar(&sbom, "sbom", "", "file to list in what is in the image, as SPDX 2.3 in JSON")
	flags.StringVar(&s.versions, "versions", "", "versions of binaries for --sbom, as name=value,name=value")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.binaries = flags.Args()
	if s.name == "" || len(s.binaries) == 0 || (output == "" && !push) {
		flags.Usage()
		return flag.ErrHelp
	}

	tag, err := name.NewTag(s.name)
	if err != nil {
		return err
	}
	layers, arch, err := contents(s)
	if err != nil {
		return err
	}
	image, err := build(s, layers, arch)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if sbom != "" {
		if err := list(s, layers, digest.String(), sbom); err != nil {
			return err
		}
	}
	if output != "" {
		if err := write(output, tag, image); err != nil {
			return err
		}
	}
	if push {
		if err := remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return err
		}
	}
	fmt.Printf("%s %s %s\n", s.name, digest, cmp.Or(output, "pushed"))
	return nil
}

// write makes the archive under another name first, so that nobody loads half
// of one.
func write(path string, tag name.Tag, image v1.Image) error {
	partial := path + ".partial"
	defer os.Remove(partial)
	if err := tarball.WriteToFile(partial, tag, image); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// list writes what is in the image into a file.
func list(s spec, layers [][]file, digest, path string) error {
	versions, err := pairs(s.versions)
	if err != nil {
		return err
	}
	b := newBill(s.name, digest)
	for _, binary := range s.binaries {
		if err := b.binary(binary, versions[filepath.Base(binary)]); err != nil {
			return err
		}
	}
	if err := b.system(layers[0]); err != nil {
		return err
	}
	return b.write(path)
}

// pairs reads name=value,name=value.
func pairs(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q: want name=value", pair)
		}
		all[key] = value
	}
	return all, nil
}
