package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/cli"
	"github.com/gatehouse-dev/gatehouse/internal/control"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

type statusFlags struct {
	output       string
	stateDir     string
	once         []string
	experimental bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [KIND[/NAME]]",
		Short: "Show Gateways, routes and what is wrong with them",
		Long: `Show the state of Gateways and routes as a running 'gatehouse run' sees it, or,
with --once, as files on their own would give it, without running anything.

KIND and NAME choose: gateway, httproute/web, httproute/shop/web (with namespace).
With --once the exit code is 1 when a file or an object has a problem.`,
		Example: `  gatehouse status
  gatehouse status httproute -o wide
  gatehouse status --once examples/quickstart`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", f.output, "", "wide", "json", "yaml"); err != nil {
				return err
			}
			var what selection
			if len(args) == 1 {
				var err error
				if what, err = parseSelection(args[0]); err != nil {
					return err
				}
			}
			v, err := f.view(cmd.Context(), cmd.InOrStdin())
			if err != nil {
				return err
			}
			if err := what.apply(&v); err != nil {
				return err
			}
			if err := printView(cmd.OutOrStdout(), v, f.output); err != nil {
				return err
			}
			if len(f.once) > 0 && !healthy(v) {
				return errFound
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (default: a table)")
	fl.StringVar(&f.stateDir, "state-dir", "", "state directory of the running process (default: the only one)")
	fl.StringArrayVar(&f.once, "once", nil, "evaluate this directory or file and exit; repeatable")
	fl.BoolVar(&f.experimental, "experimental", false, "with --once: read the experimental channel of the Gateway API")
	return cmd
}

func (f *statusFlags) view(ctx context.Context, stdin io.Reader) (control.View, error) {
	if len(f.once) > 0 {
		p, err := control.Evaluate(ctx, control.EvaluateOptions{Paths: f.once, Stdin: stdin, Experimental: f.experimental})
		if err != nil {
			return control.View{}, err
		}
		return p.View(), nil
	}
	dir := f.stateDir
	if dir == "" {
		found, err := cli.FindRunning()
		if err != nil {
			return control.View{}, err
		}
		dir = found
	}
	return fetchView(ctx, filepath.Join(dir, cli.AdminSocket))
}

func fetchView(ctx context.Context, socket string) (control.View, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gatehouse/status", nil)
	if err != nil {
		return control.View{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return control.View{}, fmt.Errorf("no running gatehouse answers at %s: %w", socket, err)
	}
	defer resp.Body.Close()
	var v control.View
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return control.View{}, fmt.Errorf("answer of the running gatehouse: %w", err)
	}
	return v, nil
}

// kinds are the words that choose a kind, as kubectl has them.
var kinds = map[string]string{
	"gatewayclass": "GatewayClass", "gatewayclasses": "GatewayClass", "gc": "GatewayClass",
	"gateway": "Gateway", "gateways": "Gateway", "gtw": "Gateway",
	"httproute": "HTTPRoute", "httproutes": "HTTPRoute",
}

// selection is the objects that a command line asks for; zero for all.
type selection struct{ kind, namespace, name string }

// parseSelection reads KIND, KIND/NAME or KIND/NAMESPACE/NAME.
func parseSelection(text string) (selection, error) {
	parts := strings.Split(text, "/")
	kind, ok := kinds[strings.ToLower(parts[0])]
	if !ok || len(parts) > 3 {
		return selection{}, usageError{fmt.Errorf("%q: want gatewayclass, gateway or httproute, with /NAME or /NAMESPACE/NAME", text)}
	}
	s := selection{kind: kind}
	switch len(parts) {
	case 2:
		s.name = parts[1]
	case 3:
		s.namespace, s.name = parts[1], parts[2]
	}
	return s, nil
}

func (s selection) matches(kind, namespace, name string) bool {
	return kind == s.kind && (s.name == "" || name == s.name) && (s.namespace == "" || namespace == s.namespace)
}

// apply leaves what is asked for.
func (s selection) apply(v *control.View) error {
	if s == (selection{}) {
		return nil
	}
	v.Items = slices.DeleteFunc(v.Items, func(it control.Item) bool {
		return !s.matches(it.Kind, it.Metadata.Namespace, it.Metadata.Name)
	})
	v.Problems = slices.DeleteFunc(v.Problems, func(p source.Problem) bool {
		return !s.matches(p.Key.Kind, p.Key.Namespace, p.Key.Name)
	})
	v.Proxies = nil
	if len(v.Items) == 0 && len(v.Problems) == 0 && s.name != "" {
		return fmt.Errorf("%s %s not found", s.kind, s.name)
	}
	return nil
}

func printView(w io.Writer, v control.View, output string) error {
	switch output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if len(v.Items) == 0 && len(v.Problems) == 0 {
		return errors.New("no objects: the files hold no Gateway of a class of ours and no route to one")
	}
	cli.PrintStatus(w, v, cli.Wide(output == "wide"))
	return nil
}

// healthy reports whether nothing is wrong. What only a running proxy can tell
// is not.
func healthy(v control.View) bool {
	if len(v.Problems) > 0 {
		return false
	}
	for _, it := range v.Items {
		if !it.Summary.OK && it.Summary.State != "Pending" {
			return false
		}
	}
	return true
}
