package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
)

// unreachable is a kubeconfig of a cluster that nobody answers for.
const unreachable = `
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none}}]
current-context: none
`

// What a person gets to know who starts a controller with a mistake, on the command
// line, in the environment or in the file, and with which exit code. A script tells by
// the code whether trying again may help.
func TestControllerMistakes(t *testing.T) {
	const head = "apiVersion: config.gatehouse.dev/v1alpha1\nkind: Configuration\n"
	for name, c := range map[string]struct {
		file string // of --config, if not empty
		env  string // NAME=VALUE
		args []string
		code int
		want string
	}{
		"an argument":             {args: []string{"start"}, code: exitUsage, want: `unknown command "start"`},
		"an unknown flag":         {args: []string{"--confg=x"}, code: exitUsage, want: "unknown flag: --confg"},
		"no truth":                {args: []string{"--leader-election=maybe"}, code: exitUsage, want: `--leader-election: "maybe" is not true or false`},
		"no address":              {args: []string{"--pod-ip=here"}, code: exitUsage, want: `--pod-ip: "here" is not an IP address`},
		"an open admin":           {args: []string{"--admin=0.0.0.0:19000"}, code: exitUsage, want: "not a loopback address"},
		"a flag's value":          {args: []string{"--infrastructure=Moon"}, code: exitUsage, want: "infrastructure.type"},
		"a variable's value":      {env: "GATEHOUSE_LOG_LEVEL=loud", code: exitUsage, want: "log.level"},
		"a variable's form":       {env: "GATEHOUSE_LEADER_ELECTION=maybe", code: exitUsage, want: "environment variable GATEHOUSE_LEADER_ELECTION"},
		"no such file":            {args: []string{"--config=/nonexistent/config.yaml"}, code: exitUsage, want: "/nonexistent/config.yaml"},
		"no YAML":                 {file: "{", code: exitUsage, want: "config.yaml"},
		"an empty file":           {file: "\n", code: exitUsage, want: "apiVersion"},
		"another kind":            {file: "apiVersion: v1\nkind: ConfigMap\n", code: exitUsage, want: "apiVersion"},
		"a misspelt field":        {file: head + "prots: {xds: 1}\n", code: exitUsage, want: `unknown field "prots"`},
		"a bad value":             {file: head + "ports: {xds: 0}\n", code: exitUsage, want: "ports.xds"},
		"a flag without a place":  {file: head + "sources: [{files: {paths: [x]}}]\n", args: []string{"--namespaces=a"}, code: exitUsage, want: "sources"},
		"no such kubeconfig":      {args: []string{"--kubeconfig=/nonexistent/kubeconfig"}, code: exitFailed, want: "no cluster to serve"},
		"no such context":         {args: []string{"--context=moon"}, code: exitFailed, want: `context "moon" does not exist`},
		"no cluster that answers": {code: exitFailed, want: "127.0.0.1:1"},
		"the same, with a file":   {file: head, code: exitFailed, want: "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			t.Setenv("KUBECONFIG", write("kubeconfig", unreachable))
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			if variable, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(variable, value)
			}
			args := append([]string{"controller"}, c.args...)
			if c.file != "" {
				args = append(args, "--config", write("config.yaml", c.file))
			}
			root := newRoot()
			root.SetArgs(args)
			cmd, err := root.ExecuteContextC(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if code := exitCode(cmd, err); code != c.code {
				t.Errorf("exit code %d of %v, want %d", code, err, c.code)
			}
		})
	}
}

// TestRefusedConfiguration protects whoever changes the configuration of controllers that run,
// with a mistake: that it isn't used is not in their log only.
func TestRefusedConfiguration(t *testing.T) {
	const head = "apiVersion: config.gatehouse.dev/v1alpha1\nkind: Configuration\n"
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(head)
	f := controllerFlags{config: path}
	reloaded := make(chan loaded, 1)
	w := &following{
		log: slog.New(slog.DiscardHandler), logs: configuration.NewLogs(configuration.Default().Log, io.Discard),
		inForce: loaded{configuration.Default(), []byte(head)}, told: make(chan error, 1), reload: func(c loaded) { reloaded <- c },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.follow(t.Context(), newController(), w)
	}()
	t.Cleanup(func() { <-done }) // t.Context() has ended by then
	write(head + "leaderElection: {takeOverAfter: 1s}\n")
	told := func(what string, right func(error) bool) {
		t.Helper()
		select {
		case err := <-w.told:
			if !right(err) || w.refused.Load() != (err != nil) {
				t.Errorf("of %s is told: %v", what, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is not told", what)
		}
	}
	told("a configuration that can't be used", func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "leaderElection.takeOverAfter")
	})

	// Levels need no other controller.
	xds := w.logs.For(configuration.LogXDS)
	write(head + "log: {level: warn, levels: {xds: debug}}\n")
	told("one that can", func(err error) bool { return err == nil })
	for deadline := time.Now().Add(time.Minute); !xds.Enabled(t.Context(), slog.LevelDebug); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the level of a component stays the same")
		}
	}
	if w.logs.For(configuration.LogControl).Enabled(t.Context(), slog.LevelInfo) || len(reloaded) > 0 {
		t.Error("the level of the others stays the same, or the controller starts anew")
	}
	write(head + "leaderElection: {takeOverAfter: 10m}\n")
	select {
	case c := <-reloaded:
		if got := c.LeaderElection.TakeOverAfter.Duration; got != 10*time.Minute {
			t.Errorf("the controller starts anew with takeOverAfter %s", got)
		}
	case <-time.After(time.Minute):
		t.Error("a configuration that can be used is not used")
	}
}
