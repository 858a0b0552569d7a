package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

func newBlueprint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "blueprint",
		Short: "Render, test and import blueprints, and show the values of Gateways",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBlueprintRender(), newBlueprintValues(), newBlueprintTest(), newBlueprintImport())
	return cmd
}

// renderFlags say how files are rendered.
type renderFlags struct {
	experimental bool
	namespace    string
}

func (f *renderFlags) define(fl *pflag.FlagSet) {
	fl.BoolVar(&f.experimental, "experimental", false, "read the experimental channel of the Gateway API")
	fl.StringVar(&f.namespace, "controller-namespace", "gatehouse-system", "namespace of the controller, where the platform says values for whole classes")
}

// render computes what files become in a cluster with some objects.
func (f *renderFlags) render(cmd *cobra.Command, paths, live []string) (*pipeline.Pipeline, error) {
	opts := standalone.RenderOptions{ControllerNamespace: f.namespace}
	opts.Paths, opts.Stdin, opts.Experimental = paths, cmd.InOrStdin(), f.experimental
	for _, path := range live {
		objects, err := readObjects(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		opts.Live = append(opts.Live, objects...)
	}
	return standalone.Render(cmd.Context(), opts)
}

// readObjects reads a file of YAML documents of any kinds.
func readObjects(path string) (out []*unstructured.Unstructured, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // the path is the user's
	if err != nil {
		return nil, err
	}
	documents := kyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw json.RawMessage
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		if o.IsList() {
			err := o.EachListItem(func(item runtime.Object) error {
				out = append(out, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, o)
	}
}

func newBlueprintRender() *cobra.Command {
	var flags gatewaysFlags
	var live []string
	cmd := &cobra.Command{
		Use:   "render PATH... | -n NAMESPACE | -A",
		Short: "Print the objects that blueprints make of Gateways",
		Long: `Print the objects that blueprints make of the Gateways of files, without a cluster, or of
those of a cluster, with how they are there. PATH is a directory, a file or - for standard
input, with the GatewayClass, its GatewayParameters, the GatewayBlueprint, Gateways, routes
and values.

What waits for objects of the cluster is told in comments. --live has files with such
objects as they would be in the cluster: with their namespaces and statuses. Which kinds are
in namespaces is known of Kubernetes' own; others are taken to be. The exit code is 1
when there is a mistake, which is told on standard error.`,
		Example: `  gatehouse blueprint render blueprint.yaml class.yaml gateway.yaml
  gatehouse blueprint render -n shop
  gatehouse blueprint render manifests --live live.yaml --gateway shop/edge -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, p, err := flags.rendered(cmd, args, live)
			if err != nil {
				return err
			}
			if done, err := printed(cmd.OutOrStdout(), flags.output, list); err != nil {
				return err
			} else if !done {
				if err := printRendered(cmd.OutOrStdout(), list); err != nil {
					return err
				}
			}
			return tellRendered(cmd.ErrOrStderr(), p, list)
		},
	}
	flags.define(cmd, "json or yaml, with values and where they are from (default: the objects)")
	cmd.Flags().StringArrayVar(&live, "live", nil, "of files: file of objects as they are in the cluster; repeatable")
	exceptCluster(cmd, "live")
	return cmd
}

// gatewaysFlags choose Gateways, of files or of a cluster, and how they are shown.
type gatewaysFlags struct {
	renderFlags
	paths   pathFlags
	cluster clusterFlags
	gateway string
	output  string
}

func (f *gatewaysFlags) define(cmd *cobra.Command, output string) {
	fl := cmd.Flags()
	f.paths.define(fl)
	f.renderFlags.define(fl)
	f.cluster.define(fl)
	fl.StringVar(&f.gateway, "gateway", "", "one Gateway, as NAMESPACE/NAME")
	fl.StringVarP(&f.output, "output", "o", "", output)
	complete(cmd, "output", "json", "yaml")
}

// rendered is what these Gateways have.
func (f *gatewaysFlags) rendered(cmd *cobra.Command, args, live []string) ([]view.Rendered, *pipeline.Pipeline, error) {
	if err := oneOf("output", f.output, "", "json", "yaml"); err != nil {
		return nil, nil, err
	}
	of, err := gatewayNamed(f.gateway)
	if err != nil {
		return nil, nil, err
	}
	var p *pipeline.Pipeline
	paths, namespace := f.paths.all(args), ""
	if len(paths) > 0 && !f.cluster.asked(cmd) {
		p, err = f.render(cmd, paths, live)
	} else {
		f.cluster.controllerNamespace = f.namespace
		p, namespace, err = new(evaluateFlags).evaluated(cmd, paths, &f.cluster, "render", "rendered")
	}
	if err != nil {
		return nil, nil, err
	}
	list := slices.DeleteFunc(view.RenderedOf(p, of), func(r view.Rendered) bool { return view.Elsewhere(r.Gateway.Namespace, namespace) })
	if len(list) == 0 {
		_ = tellRendered(cmd.ErrOrStderr(), p, nil) // one of them may be why
		return nil, nil, noGateway(of)
	}
	return list, p, nil
}

func gatewayNamed(text string) (object.Name, error) {
	if text == "" {
		return object.Name{}, nil
	}
	of, ok := object.ParseName(text)
	if !ok {
		return of, usageError{fmt.Errorf("--gateway: %q is not NAMESPACE/NAME, such as shop/edge", text)}
	}
	return of, nil
}

func noGateway(of object.Name) error {
	if of.IsZero() {
		return errors.New("no Gateway has a class with a blueprint")
	}
	return fmt.Errorf("there is no Gateway %s, or its class has no blueprint", of)
}

// printRendered writes objects as manifests.
func printRendered(w io.Writer, list []view.Rendered) error {
	var out bytes.Buffer
	for _, r := range list {
		fmt.Fprintf(&out, "# Gateway %s\n", r.Gateway)
		if r.Problem != "" {
			fmt.Fprintf(&out, "# %s\n", r.Problem)
		}
		for _, h := range r.Undecided {
			fmt.Fprintf(&out, "# %s: %s\n", h.Place, h.Why)
		}
		if r.NoAddress != "" {
			fmt.Fprintf(&out, "# %s\n", r.NoAddress)
		} else if len(r.Addresses) > 0 {
			fmt.Fprintf(&out, "# addresses: %s\n", strings.Join(r.Addresses, ", "))
		}
		for _, o := range r.Objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return err
			}
			if o.State != "" {
				o.Place += ", " + o.State
			}
			fmt.Fprintf(&out, "---\n# %s\n%s", o.Place, text)
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// saysOfBlueprints are the kinds whose problems are told with what is rendered: others wait for proxies.
var saysOfBlueprints = []object.Kind{kind.GatewayClass, kind.GatewayBlueprint, kind.GatewayClassValues, kind.GatewayValues}

// tellRendered tells what is wrong with blueprints and values, and what of each Gateway can't be
// rendered. It returns errFound if there is something.
func tellRendered(w io.Writer, p *pipeline.Pipeline, list []view.Rendered) error {
	v := view.Of(p)
	v.Items = slices.DeleteFunc(v.Items, func(it view.Item) bool {
		return !slices.Contains(saysOfBlueprints, object.KindOf(it.GroupVersionKind().Group, it.Kind))
	})
	err := tellProblems(w, v, "")
	for _, r := range list {
		if r.Problem != "" {
			fmt.Fprintf(w, "Gateway %s: %s\n", r.Gateway, r.Problem)
			err = errFound
		}
		for _, h := range r.Undecided {
			if !h.Waits {
				fmt.Fprintf(w, "Gateway %s: %s: %s\n", r.Gateway, h.Place, h.Why)
				err = errFound
			}
		}
	}
	return err
}

func newBlueprintValues() *cobra.Command {
	var flags gatewaysFlags
	cmd := &cobra.Command{
		Use:   "values [PATH... | -n NAMESPACE | -A]",
		Short: "Show the values of Gateways, and who says each",
		Long: `Show the values that are in force for the blueprints of Gateways, of files or of a cluster, and
which object says each of them. Who is left out, since others with more authority or the
schema don't allow what it says, is told on standard error.`,
		Example: `  gatehouse blueprint values -n shop
  gatehouse blueprint values manifests --gateway shop/edge -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, p, err := flags.rendered(cmd, args, nil)
			if err != nil {
				return err
			}
			for i := range list {
				list[i].Objects, list[i].Undecided = nil, nil
			}
			if err := printValues(cmd.OutOrStdout(), flags.output, list); err != nil {
				return err
			}
			return tellRendered(cmd.ErrOrStderr(), p, list)
		},
	}
	flags.define(cmd, "json or yaml (default: a table)")
	return cmd
}

func printValues(w io.Writer, form string, list []view.Rendered) error {
	if done, err := printed(w, form, list); done {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range list {
		fmt.Fprintf(t, "Gateway %s\n", r.Gateway) //nolint:errcheck // Flush returns it
		for _, v := range r.Values {
			text, err := json.Marshal(v.Value)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "  %s\t%s\tfrom %s\n", v.Name, text, v.From) //nolint:errcheck // Flush returns it
		}
	}
	return t.Flush()
}

// Names of files of a test of blueprints.
const (
	testInput    = "input*.yaml"
	testLive     = "live*.yaml"
	testExpected = "expected.yaml"
)

func newBlueprintTest() *cobra.Command {
	var flags renderFlags
	var update bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Compare what blueprints make with what is expected",
		Long: `Render each case below DIR, and compare the objects with those that are expected. A case is a
directory with input*.yaml, and perhaps live*.yaml, the objects that there are in the cluster.
The YAML files beside the directories of cases, such as the blueprint and its class, are read for
all of them. What is expected is in expected.yaml of each case, which --update writes: look
at each difference. A case may be of a mistake: it is in expected.yaml, too. The exit code is 1
when something differs.`,
		Example: `  gatehouse blueprint test blueprints/public-web
  gatehouse blueprint test blueprints/public-web --update`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, err := filepath.Glob(filepath.Join(args[0], "*", testInput))
			if err != nil {
				return err
			}
			own, err := filepath.Glob(filepath.Join(args[0], testInput))
			if err != nil {
				return err
			}
			var cases []string
			for _, path := range slices.Concat(own, inputs) {
				cases = append(cases, filepath.Dir(path))
			}
			cases = slices.Compact(cases)
			if len(cases) == 0 {
				return fmt.Errorf("%s has no case: there is no %s in it or in a directory below", args[0], testInput)
			}
			var failed error
			for _, dir := range cases {
				result, err := flags.test(cmd, args[0], dir, update)
				if err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\n", result, dir)
				if result == testDiffers {
					failed = errFound
				}
			}
			return failed
		},
	}
	flags.define(cmd.Flags())
	cmd.Flags().BoolVar(&update, "update", false, "write expected.yaml of each case")
	return cmd
}

// Results of a case.
const (
	testPasses  = "ok"
	testDiffers = "differs"
	testWritten = "written"
)

// test renders a case, and says how it went.
func (f *renderFlags) test(cmd *cobra.Command, shared, dir string, update bool) (string, error) {
	var paths []string
	patterns := []string{filepath.Join(dir, testInput)}
	if shared != dir {
		patterns = append(patterns, filepath.Join(shared, "*.yaml"))
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		paths = append(paths, found...)
	}
	live, err := filepath.Glob(filepath.Join(dir, testLive))
	if err != nil {
		return "", err
	}
	p, err := f.render(cmd, paths, live)
	if err != nil {
		return "", err
	}
	var got, problems bytes.Buffer
	list := view.RenderedOf(p, object.Name{})
	_ = tellRendered(&problems, p, list) // a case may be of a mistake
	for line := range strings.Lines(strings.NewReplacer(dir+string(filepath.Separator), "", shared+string(filepath.Separator), "").Replace(problems.String())) {
		got.WriteString("# problem: " + line)
	}
	if err := printRendered(&got, list); err != nil {
		return "", err
	}
	at := filepath.Join(dir, testExpected)
	want, err := os.ReadFile(at) //nolint:gosec // the path is the user's
	switch {
	case err == nil && bytes.Equal(want, got.Bytes()):
		return testPasses, nil
	case update:
		return testWritten, os.WriteFile(at, got.Bytes(), 0o644) //nolint:gosec // a file for everybody
	case err != nil:
		return "", fmt.Errorf("%w; --update writes it", err)
	}
	expected, rendered := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
	i := 0
	for i < min(len(expected), len(rendered))-1 && expected[i] == rendered[i] {
		i++
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: differs; --update writes it anew\n  expected: %s\n  rendered: %s\n", at, i+1, expected[i], rendered[i])
	return testDiffers, nil
}
