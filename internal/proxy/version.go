package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

const (
	// InstallVersion is the Envoy release that Install fetches.
	InstallVersion = "1.40.0"

	// SupportedVersions is the range of Envoy releases that Gatehouse
	// generates configuration for, in words. Envoy removes and deprecates
	// fields with every minor release, so a range is one minor release: patch
	// releases are welcome, anything else is refused.
	SupportedVersions = "1.40.x"

	supportedPrefix = "1.40."

	// versionTimeout bounds `envoy --version`, which takes 30 ms; the rest is
	// for a cold disk (the binary has 107 MB) and a busy machine.
	versionTimeout = 20 * time.Second
)

// Envoy prints "envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL"; a build
// between releases has a suffix ("1.41.0-dev").
var versionLine = regexp.MustCompile(`version: [0-9a-f]+/([0-9]+\.[0-9]+\.[0-9]+[^/\s]*)/`)

// parseVersion reads the release out of what `envoy --version` prints.
func parseVersion(output []byte) (string, error) {
	m := versionLine.FindSubmatch(output)
	if m == nil {
		return "", fmt.Errorf("no Envoy version in its answer to --version: %q", clip(output, 200))
	}
	return string(m[1]), nil
}

// supported says whether Gatehouse can drive this release. A development
// build is no release: what it accepts changes from day to day.
func supported(version string) bool {
	return strings.HasPrefix(version, supportedPrefix) && !strings.Contains(version, "-")
}

// inspect runs the binary at path to learn its version, and refuses a version
// outside the supported range.
func inspect(ctx context.Context, path, from string) (Binary, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer in %s", versionTimeout)
		}
		return Binary{}, fmt.Errorf("%s (from %s) does not run as Envoy: %s --version: %w%s",
			path, from, path, err, quoted(out))
	}
	version, err := parseVersion(out)
	if err != nil {
		return Binary{}, fmt.Errorf("%s (from %s) is not Envoy: %w", path, from, err)
	}
	if !supported(version) {
		return Binary{}, fmt.Errorf("%s (from %s) is Envoy %s, but this Gatehouse supports %s: "+
			"run `gatehouse envoy install` to get %s, or name another binary with --envoy PATH or GATEHOUSE_ENVOY",
			path, from, version, SupportedVersions, InstallVersion)
	}
	return Binary{Path: path, Version: version, From: from}, nil
}

// quoted appends what a failed program said to an error text.
func quoted(out []byte) string {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s", clip(out, 600))
}

// clip keeps the end of a long output, where programs put their reason.
func clip(out []byte, limit int) []byte {
	if len(out) <= limit {
		return out
	}
	return append([]byte("…"), out[len(out)-limit:]...)
}
