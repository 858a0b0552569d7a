package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

func newPolicies() *cobra.Command {
	var evaluate evaluateFlags
	var paths pathFlags
	var output, effective, stateDir string
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "policies [PATH... | -n NAMESPACE | -A]",
		Short: "Show policies, and what they say together where",
		Long: `Show the policies of files or of a cluster with their state. With --effective, show which
rules of AuthPolicies, limits of RateLimitPolicies and settings of TrafficPolicies are in force
for a Gateway, a ListenerSet or a route, for one of their listeners or named rules, or for a
Service with policies of its own, which policy each is from, and which policies have been overridden by whom. PATH is a directory, a file or - for
standard input. Without one, the 'gatehouse run' that runs here is asked for its own, or
the one that --state-dir names.

Of files and of a cluster, what is shown is what the objects become here and now; what
proxies have of it is in gatehouse status. The exit code is 1 when a file or an object in it has a problem, which is
told on standard error, and when files hold nothing. Of a cluster it tells no problems.`,
		Example: `  gatehouse policies
  gatehouse policies --effective httproute/shop/checkout
  gatehouse policies examples/quickstart
  gatehouse policies -A --effective httproute/shop/cart
  gatehouse policies -n shop --effective httproute/cart/checkout -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "", "json", "yaml"); err != nil {
				return err
			}
			files := paths.all(args)
			who, namespace, err := evaluate.ask(cmd, files, &cluster, stateDir)
			if err != nil {
				return err
			}
			v, err := who.view()
			if err != nil {
				return err
			}
			if effective == "" {
				err = printPolicies(cmd.OutOrStdout(), output, policyItems(v, namespace))
			} else {
				err = showEffective(cmd, who, v, effective, output, namespace)
			}
			if err != nil || cluster.asked(cmd) {
				return err
			}
			return judge(cmd.ErrOrStderr(), v)
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "", "json or yaml (default: tables)")
	fl.StringVar(&effective, "effective", "", "what is in force for KIND/[NAMESPACE/]NAME[/SECTION], such as httproute/shop/cart")
	defineStateDir(cmd, &stateDir)
	evaluate.define(fl)
	cluster.define(fl)
	exceptCluster(cmd, "state-dir")
	complete(cmd, "output", "json", "yaml")
	return cmd
}

// showEffective writes what is in force for what --effective names. Of two names behind the kind,
// the first is a namespace, or else an object and the second its section.
func showEffective(cmd *cobra.Command, who asked, v view.View, effective, output, namespace string) error {
	of, section, err := sectionNamed(effective, cmp.Or(namespace, "default"))
	if err != nil {
		return err
	}
	in, err := who.inForce(of, section)
	if err != nil {
		return err
	}
	read := ""
	if parts := strings.Split(effective, "/"); in.Absent != "" && len(parts) == 3 && of.Namespace != "" {
		whole := of
		whole.Name = object.Name{Namespace: cmp.Or(namespace, "default"), Name: parts[1]}
		other, err := who.inForce(whole, parts[2])
		if err != nil {
			return err
		}
		if other.Absent == "" {
			in = other
		} else {
			read = fmt.Sprintf("; nor is there %s, to have a section %s", whole, parts[2])
		}
	}
	if len(in.Paths) > 0 {
		return printEffective(cmd.OutOrStdout(), output, in.Paths)
	}
	_ = tellProblems(cmd.ErrOrStderr(), v, namespace) // one of them may be why
	if in.Absent != "" {
		return fmt.Errorf("--effective: %s%s", in.Absent, read)
	}
	if of.Kind == kind.Service {
		return fmt.Errorf("--effective: no policy is for %s, or no route sends requests there; what policies of routes say is told of these", effective)
	}
	return fmt.Errorf("--effective: no listener serves %s", effective)
}

// policyItems are the policies of a namespace; of all if it is empty.
func policyItems(v view.View, namespace string) []view.Item {
	items := slices.DeleteFunc(slices.Clone(v.Items), func(it view.Item) bool {
		d := kind.All.Of(object.KindOf(it.GroupVersionKind().Group, it.Kind))
		return d == nil || d.Family != kind.Policy || view.Elsewhere(it.Metadata.Namespace, namespace)
	})
	for i := range items {
		items[i].WithoutProxies()
	}
	return items
}

// sectionNamed reads KIND/[NAMESPACE/]NAME[/SECTION]. Of two names behind the kind, the first
// is a namespace.
func sectionNamed(text, namespace string) (object.Key, string, error) {
	parts := strings.Split(text, "/")
	section := ""
	if len(parts) == 4 {
		section, parts = parts[3], parts[:3]
	}
	node, err := nodeNamed(strings.Join(parts, "/"), namespace)
	if err != nil || strings.Contains(node.Name, "/") {
		return object.Key{}, "", usageError{fmt.Errorf("--effective: %q is not KIND/NAME, KIND/NAMESPACE/NAME or KIND/NAMESPACE/NAME/SECTION, such as httproute/shop/cart", text)}
	}
	return keyOf(node), section, nil
}

// printed writes a value as JSON or YAML; false for tables.
func printed(w io.Writer, form string, value any) (bool, error) {
	switch form {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return true, enc.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = w.Write(text)
		}
		return true, err
	}
	return false, nil
}

// printDocument prints one value of a stream of them: a line of JSON, or a document of YAML.
func printDocument(w io.Writer, form string, value any) error {
	text, err := json.Marshal(value)
	if form == "yaml" && err == nil {
		text, err = yaml.JSONToYAML(text)
		text = append([]byte("---\n"), text...)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", strings.TrimRight(string(text), "\n"))
	return err
}

func printPolicies(w io.Writer, form string, list []view.Item) error {
	if done, err := printed(w, form, list); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There are no policies.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POLICY\tTARGETS\tSTATE\t") //nolint:errcheck // Flush returns it
	for _, it := range list {
		name := it.Kind + " " + it.Metadata.Namespace + "/" + it.Metadata.Name
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, strings.Join(it.Summary.Parents, ", "), it.Summary.State, it.Summary.Message) //nolint:errcheck // Flush returns it
	}
	return t.Flush()
}

// withoutRules says what is in force where policies of a kind say nothing.
var withoutRules = map[string]string{
	kind.AuthPolicy.Name(): "everybody passes", kind.RateLimitPolicy.Name(): "nothing is limited", kind.TrafficPolicy.Name(): "traffic has no settings",
}

func printEffective(w io.Writer, form string, list []view.Effective) error {
	if done, err := printed(w, form, list); done {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) } //nolint:errcheck // Flush returns it
	before := ""
	for _, e := range list {
		where := "Gateway " + e.Gateway + ", listener " + e.Listener
		if e.Route != "" {
			where += ", " + e.Route
		}
		if e.Rule != "" {
			where += ", rule " + e.Rule
		}
		if e.Service != "" {
			where += ", to Service " + e.Service
		}
		if where != before {
			if before != "" {
				line("")
			}
			line("%s", where)
		}
		before = where
		if len(e.Rules) == 0 {
			line("  %s", withoutRules[e.Kind])
		}
		for _, r := range e.Rules {
			line("  %s\tfrom %s %s\ton %s", r.Name, e.Kind, r.Policy, r.Target)
		}
		for _, o := range e.Policies {
			if len(o.OverriddenBy) > 0 {
				line("  %s %s on %s: %d of its %d rules in force; overridden by %s", e.Kind, o.Policy, o.Target, o.InForce, o.Rules, strings.Join(o.OverriddenBy, ", "))
			}
			if len(o.Undated) > 0 {
				line("    nothing here says whether %s or %s is the older one: a process that runs prefers the one that it had first", o.Policy, strings.Join(o.Undated, ", "))
			}
			if o.Problem != "" {
				line("  %s %s on %s: %s", e.Kind, o.Policy, o.Target, o.Problem)
			}
		}
	}
	return t.Flush()
}
