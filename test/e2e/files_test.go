//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// problem waits until a problem of the file is reported whose text contains all
// the words.
func (s *site) problem(t *testing.T, file string, words ...string) statusProblem {
	t.Helper()
	var found statusProblem
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		for _, p := range report.Problems {
			if filepath.Base(p.File) != file {
				continue
			}
			found = p
			text := p.Field + " " + p.Message
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("the problem of %s says %q, not %q", file, text, w)
				}
			}
			return nil
		}
		return fmt.Errorf("no problem of %s among %v", file, report.Problems)
	})
	return found
}

// healed waits until the file has no problem.
func (s *site) healed(t *testing.T, file string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		for _, p := range report.Problems {
			if filepath.Base(p.File) == file {
				return fmt.Errorf("still a problem: %+v", p)
			}
		}
		return nil
	})
}

// TestBrokenFile protects traffic from what is saved half-done: broken YAML, an
// object that its schema refuses, one that a CEL rule refuses. The last valid
// version serves, the error names file, line and field, and other files go on.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	for _, tc := range []struct {
		name, text string
		line       int
		words      []string
	}{
		{"syntax", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: home\n", 0, nil},
		{
			"schema", strings.Replace(siteRoute("home", "home.example", "v2"), "port: 8080", "port: 99999", 1),
			9, []string{"spec.rules[0].backendRefs[0].port"},
		},
		{
			"unknown field", strings.Replace(siteRoute("home", "home.example", "v2"), "hostnames:", "hostname:", 1),
			7, []string{"spec.hostname"},
		},
		{
			"CEL rule", siteRules("home", "home.example", `- matches: [{path: {type: PathPrefix, value: /}}]
  filters:
  - {type: RequestRedirect, requestRedirect: {hostname: a.example}}
  - {type: URLRewrite, urlRewrite: {hostname: b.example}}`),
			0, []string{"spec.rules[0].filters"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.write(t, "home.yaml", tc.text)
			p := s.problem(t, "home.yaml", tc.words...)
			if p.Line == 0 || tc.line > 0 && p.Line != tc.line {
				t.Errorf("the problem is at line %d, want %d: %+v", p.Line, tc.line, p)
			}
			s.serves(t, "home.example", "v1")
			other := strings.ToLower(strings.ReplaceAll(tc.name, " ", "-")) + ".example"
			s.write(t, "other.yaml", siteRoute("other", other, "v2"))
			s.serves(t, other, "v2")
			s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
			s.healed(t, "home.yaml")
		})
	}
}

// TestDirectoryVanishes protects traffic while the watched directory is away.
func TestDirectoryVanishes(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	away := s.dir + ".away"
	if err := os.Rename(s.dir, away); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		report, err := s.status()
		if err != nil {
			return err
		}
		if len(report.Problems) == 0 {
			return fmt.Errorf("nothing is said about the directory")
		}
		return nil
	})
	s.serves(t, "home.example", "v1")
	if err := os.Rename(away, s.dir); err != nil {
		t.Fatal(err)
	}
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
}

// TestDirectoryAppears protects a start before the directory is there, as with a
// volume that is mounted late.
func TestDirectoryAppears(t *testing.T) {
	t.Parallel()
	found := needTools(t)
	address := newAddress()
	p, err := newProcess(found, "--bind", address, "--port-offset", strconv.Itoa(portOffset))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{process: p, address: address}
	if err := os.Remove(p.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := p.waitReady(); err != nil {
		t.Fatal(err)
	}
	s.problem(t, filepath.Base(p.dir), "no such file or directory")
	s.write(t, "all.yaml", siteGateway(httpListener)+mustBackend(t, siteNamespace, "v1", "v1")+siteRoute("home", "home.example", "v1"))
	s.serves(t, "home.example", "v1")
	s.healed(t, filepath.Base(p.dir))
}

// TestMountedConfigMap protects the way in which Kubernetes updates a mounted
// ConfigMap: the files are links through ..data, which is swapped.
func TestMountedConfigMap(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	mount := filepath.Join(s.dir, "mounted")
	generation := func(n int, service string) string {
		dir := filepath.Join(mount, fmt.Sprintf("..2026_%d", n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := siteRoute("mounted", "mounted.example", service)
		if err := os.WriteFile(filepath.Join(dir, "route.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(dir)
	}
	swap := func(target string) {
		next := filepath.Join(mount, "..data_tmp")
		if err := os.Symlink(target, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap(generation(1, "v1"))
	if err := os.Symlink("..data/route.yaml", filepath.Join(mount, "route.yaml")); err != nil {
		t.Fatal(err)
	}
	s.serves(t, "mounted.example", "v1")
	swap(generation(2, "v2"))
	if err := os.RemoveAll(filepath.Join(mount, "..2026_1")); err != nil {
		t.Fatal(err)
	}
	s.serves(t, "mounted.example", "v2")
	s.remove(t, "mounted")
	s.answers(t, "http://mounted.example/", http.StatusNotFound)
}

// TestDuplicateObject protects the first of two definitions, and the one who
// wonders why the second has no effect.
func TestDuplicateObject(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.write(t, "zz-duplicate.yaml", siteRoute("home", "home.example", "v2"))
	s.problem(t, "zz-duplicate.yaml", "home.yaml")
	s.serves(t, "home.example", "v1")
	s.remove(t, "home.yaml")
	s.serves(t, "home.example", "v2")
	s.healed(t, "zz-duplicate.yaml")
}
