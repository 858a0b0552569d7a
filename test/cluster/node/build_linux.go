package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// built is what a cluster is made of.
type built struct {
	root   string            // of the checkout
	bin    string            // directory of binaries
	images map[string]string // docker archives by image
	crds   string            // the Gateway API's, a directory for each channel
}

const (
	pauseImage = "gatehouse.test/pause:cluster"
	dnsImage   = "gatehouse.test/coredns:cluster"
)

// The official suite's backend. Its manifests name two versions, which differ in
// nothing that it tests.
var echoImages = []string{
	"registry.k8s.io/gateway-api/conformance/echo-basic:v0.1.0",
	"registry.k8s.io/gateway-api/conformance/echo-basic:v0.2.0",
}

// packages are what Debian has ready, by a program of each.
var packages = map[string]string{
	"containerd": "containerd",
	"ctr":        "containerd",
	"runc":       "runc",
	"ip":         "iproute2",
	"nft":        "nftables",
	"iptables":   "iptables", // for host ports
	"conntrack":  "conntrack",
	plugins:      "containernetworking-plugins",
}

// plugins is where Debian has the network's plugins.
const plugins = "/usr/lib/cni/ptp"

// build makes what is not there yet. The modules under test/cluster/build pin
// all versions.
func build(ctx context.Context) (built, error) {
	var b built
	if err := install(ctx); err != nil {
		return b, err
	}
	module, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/gatehouse-dev/gatehouse")
	if err != nil {
		return b, err
	}
	api, err := output(ctx, module, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	if err != nil {
		return b, err
	}
	cache, err := cluster.Cache()
	if err != nil {
		return b, err
	}
	b = built{
		root:   module,
		bin:    filepath.Join(cache, "bin"),
		images: map[string]string{},
		crds:   filepath.Join(api, "config", "crd"),
	}
	archive := func(name string) string { return filepath.Join(cache, "images", name+".tar") }
	b.images[pauseImage] = archive("pause")
	b.images[dnsImage] = archive("coredns")
	for _, image := range echoImages {
		b.images[image] = archive("echo-" + image[strings.LastIndex(image, ":")+1:])
	}

	// The stamp tells in no time what the compiler would take long to find out.
	sum, err := fingerprint(filepath.Join(module, "test", "cluster", "build"))
	if err != nil {
		return b, err
	}
	stamp := filepath.Join(cache, "stamp")
	if old, err := os.ReadFile(stamp); err == nil && string(old) == sum {
		return b, nil
	}
	started := time.Now()
	fmt.Println("building Kubernetes, etcd, CoreDNS: minutes, once")
	for _, dir := range []string{b.bin, filepath.Join(cache, "images")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return b, err
		}
	}
	if err := compile(ctx, b); err != nil {
		return b, err
	}
	if err := pack(ctx, b); err != nil {
		return b, err
	}
	fmt.Println("built in", time.Since(started).Round(time.Second))
	return b, os.WriteFile(stamp, []byte(sum), 0o644)
}

// install fetches the Debian packages that are missing.
func install(ctx context.Context) error {
	var missing []string
	for program, name := range packages {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install %s: they are needed, and there is no apt-get", strings.Join(missing, ", "))
	}
	fmt.Println("installing", strings.Join(missing, ", "))
	if _, err := output(ctx, "", "apt-get", "update", "-q"); err != nil {
		return err
	}
	_, err := output(ctx, "", "apt-get", append([]string{"install", "-qy", "--no-install-recommends"}, missing...)...)
	return err
}

// compile builds everything of one module in one go, so that what Kubernetes,
// etcd and CoreDNS share is compiled once. The suite's backend has hundreds of
// modules of its own, and a module for itself.
func compile(ctx context.Context, b built) error {
	source := filepath.Join(b.root, "test", "cluster", "build")
	version, err := output(ctx, source, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	// Without a version, kubelet and API server take each other for too old.
	flags := "-s -w -X k8s.io/component-base/version.gitVersion=" + version +
		" -X k8s.io/component-base/version.gitMajor=" + major + " -X k8s.io/component-base/version.gitMinor=" + minor
	if _, err := output(ctx, source, "go", "build", "-ldflags", flags, "-o", b.bin+"/", "tool", "./etcd", "./coredns", "./pause"); err != nil {
		return err
	}
	_, err = output(ctx, filepath.Join(source, "echo"), "go", "build", "-ldflags", "-s -w", "-o", b.bin+"/", "tool")
	return err
}

// pack makes images of the programs that run in pods. CoreDNS and the backend
// listen below port 1024, and do so as root.
func pack(ctx context.Context, b built) error {
	for image, archive := range b.images {
		name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
		if _, err := output(ctx, filepath.Join(b.root, "tools", "image"), "go", "run", ".", "--name", image, "--output", archive,
			"--user", "0:0", filepath.Join(b.bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// fingerprint is of all that decides what is built.
func fingerprint(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintln(h, path[len(dir):], len(data))
		_, _ = h.Write(data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// output runs a command and returns the one line that it prints; an error has
// all that it said.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// The same settings as everything else here is built with.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOTOOLCHAIN=auto", "DEBIAN_FRONTEND=noninteractive")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}
