package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
