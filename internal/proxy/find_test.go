package proxy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// printsVersion writes a program that answers --version like that release.
func printsVersion(t *testing.T, path, version string) string {
	t.Helper()
	script(t, path, fmt.Sprintf("echo; echo 'envoy  version: 9e55/%s/Clean/RELEASE/BoringSSL'", version))
	return path
}

func script(t *testing.T, path, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func environ(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFindOrder(t *testing.T) {
	dir := t.TempDir()
	explicit := printsVersion(t, filepath.Join(dir, "explicit"), "1.40.1")
	fromEnv := printsVersion(t, filepath.Join(dir, "env"), "1.40.2")
	cached := fillCache(t, filepath.Join(dir, "cache"))
	onPath := printsVersion(t, filepath.Join(dir, "bin", "envoy"), "1.40.3")

	vars := map[string]string{"GATEHOUSE_CACHE": filepath.Join(dir, "cache"), "PATH": "relative:" + filepath.Join(dir, "bin")}
	steps := []struct {
		explicit, env string
		remove        string
		want          Binary
	}{
		{explicit: explicit, env: fromEnv, want: Binary{Path: explicit, Version: "1.40.1", From: "--envoy"}},
		{env: fromEnv, want: Binary{Path: fromEnv, Version: "1.40.2", From: "GATEHOUSE_ENVOY"}},
		{want: Binary{Path: cached, Version: "1.40.0", From: "cache"}},
		{remove: cached, want: Binary{Path: onPath, Version: "1.40.3", From: "PATH"}},
	}
	for _, step := range steps {
		if step.remove != "" {
			if err := os.Remove(step.remove); err != nil {
				t.Fatal(err)
			}
		}
		vars["GATEHOUSE_ENVOY"] = step.env
		got, err := Find(t.Context(), FindOptions{Explicit: step.explicit, Getenv: environ(vars)})
		if err != nil {
			t.Fatal(err)
		}
		if got != step.want {
			t.Errorf("got %+v, want %+v", got, step.want)
		}
	}
}

// What a person named, or what comes first, is used or refused, and the text
// says what to do.
func TestFindRefuses(t *testing.T) {
	dir := t.TempDir()
	good := printsVersion(t, filepath.Join(dir, "bin", "envoy"), "1.40.0")
	old := printsVersion(t, filepath.Join(dir, "old"), "1.39.3")
	dev := printsVersion(t, filepath.Join(dir, "dev"), "1.40.0-dev")
	other := filepath.Join(dir, "other")
	script(t, other, "echo hello")
	failing := filepath.Join(dir, "failing")
	script(t, failing, "echo 'GLIBC_2.31 not found' >&2; exit 127")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := os.Truncate(fillCache(t, damaged), 5); err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(good)
	empty := filepath.Join(dir, "nothing")

	cases := map[string]struct {
		explicit string
		vars     map[string]string
		want     []string
	}{
		"missing":        {explicit: filepath.Join(dir, "none"), want: []string{"--envoy", "none does not exist"}},
		"missing in env": {vars: map[string]string{"GATEHOUSE_ENVOY": "/none"}, want: []string{"GATEHOUSE_ENVOY", "/none does not exist"}},
		"not executable": {explicit: plain, want: []string{plain, "not executable", "chmod +x"}},
		"a directory":    {explicit: dir, want: []string{"is a directory"}},
		"too old":        {explicit: old, want: []string{old, "Envoy 1.39.3", "supports 1.40.x", "gatehouse envoy install"}},
		"development":    {explicit: dev, want: []string{"Envoy 1.40.0-dev", "supports 1.40.x"}},
		"not Envoy":      {explicit: other, want: []string{other, "not Envoy", "hello"}},
		"does not run":   {explicit: failing, want: []string{failing, "GLIBC_2.31 not found"}},
		"damaged cache":  {vars: map[string]string{"GATEHOUSE_CACHE": damaged}, want: []string{"damaged", "5 bytes", "gatehouse envoy install"}},
		"nothing": {vars: map[string]string{"PATH": empty},
			want: []string{"gatehouse envoy install", "on the PATH", "--envoy PATH"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			vars := map[string]string{"PATH": path, "GATEHOUSE_CACHE": empty}
			maps.Copy(vars, c.vars)
			got, err := Find(t.Context(), FindOptions{Explicit: c.explicit, Getenv: environ(vars)})
			if err == nil {
				t.Fatalf("found %+v", got)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error has no %q: %v", want, err)
				}
			}
		})
	}
}
