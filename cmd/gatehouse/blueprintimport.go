package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/blueprint/gotemplate"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// foreignGroup is the group of the controller whose blueprints are imported.
const foreignGroup = "gateway.tv2.dk"

// foreignController is its name in classes.
const foreignController = "github.com/tv2-oss/bifrost-gateway-controller"

func newBlueprintImport() *cobra.Command {
	im := importer{}
	cmd := &cobra.Command{
		Use:   "import PATH...",
		Short: "Turn blueprints of the bifrost-gateway-controller into GatewayBlueprints",
		Long: `Turn objects of the bifrost-gateway-controller into ours, and print them: GatewayClassBlueprints with the
parameters that name them and the rights that they need, GatewayClasses, GatewayClassConfigs and
GatewayConfigs. Other objects are left out. PATH is a file.

Go templates become YAML with expressions, and what expressions can't say becomes text(). What is to be
done by hand is told on standard error, with the line of its template, and the exit code is 1 then. Render
the result and compare: gatehouse blueprint render.`,
		Example: "  gatehouse blueprint import bifrost/*.yaml >blueprint.yaml",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				objects, err := readObjects(path)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				for _, o := range objects {
					im.object(o)
				}
			}
			if len(im.out) == 0 {
				return fmt.Errorf("there is no object of the group %s, and no GatewayClass of %s", foreignGroup, foreignController)
			}
			for _, o := range im.out {
				text, err := yaml.Marshal(o)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "---\n%s", text)
			}
			for _, problem := range im.problems {
				fmt.Fprintln(cmd.ErrOrStderr(), problem)
			}
			if im.problems != nil {
				return errFound
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&im.namespace, "controller-namespace", "gatehouse-system", "namespace of the controller, for parameters and for values of whole classes")
	cmd.Flags().StringVar(&im.foreign, "from-namespace", "bifrost-gateway-controller-system", "namespace of the other controller, whose values for whole classes move to --controller-namespace")
	return cmd
}

// importer collects what objects become.
type importer struct {
	namespace, foreign string
	out                []any
	problems           []string
}

func (im *importer) problem(of *unstructured.Unstructured, format string, args ...any) {
	im.problems = append(im.problems, fmt.Sprintf("%s %s: ", of.GetKind(), object.Name{Namespace: of.GetNamespace(), Name: of.GetName()})+fmt.Sprintf(format, args...))
}

func (im *importer) object(o *unstructured.Unstructured) {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	group := o.GroupVersionKind().Group
	switch {
	case group == foreignGroup && o.GetKind() == "GatewayClassBlueprint":
		im.blueprint(o, spec)
	case group == foreignGroup && o.GetKind() == "GatewayClassConfig":
		im.values(o, spec, "GatewayClassValues")
	case group == foreignGroup && o.GetKind() == "GatewayConfig":
		im.values(o, spec, "GatewayValues")
	case o.GetKind() == "GatewayClass" && spec["controllerName"] == foreignController:
		name, _, _ := unstructured.NestedString(spec, "parametersRef", "name")
		im.add("gateway.networking.k8s.io/v1", "GatewayClass", "", o.GetName(), map[string]any{
			"controllerName": "gatehouse.dev/controller", "description": spec["description"],
			"parametersRef": map[string]any{"group": v1alpha1.GroupVersion.Group, "kind": "GatewayParameters", "namespace": im.namespace, "name": name},
		})
	}
}

// add takes an object. A spec's nulls are left out.
func (im *importer) add(apiVersion, kind, namespace, name string, spec map[string]any) {
	maps.DeleteFunc(spec, func(_ string, v any) bool { return v == nil })
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	im.out = append(im.out, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec})
}

// values takes values of a class, a namespace or a Gateway.
func (im *importer) values(o *unstructured.Unstructured, spec map[string]any, kind string) {
	namespace := o.GetNamespace()
	if namespace == im.foreign {
		namespace = im.namespace
	}
	target, _, _ := unstructured.NestedMap(spec, "targetRef")
	delete(target, "namespace") // it is the object's own
	im.add(v1alpha1.GroupVersion.String(), kind, namespace, o.GetName(), map[string]any{
		"targetRef": target, "defaults": withoutNulls(spec["default"]), "overrides": withoutNulls(spec["override"]),
	})
}

// blueprint takes a blueprint, with parameters and rights.
func (im *importer) blueprint(o *unstructured.Unstructured, spec map[string]any) {
	gateways, _, err := unstructured.NestedStringMap(spec, "gatewayTemplate", "resourceTemplates")
	routes, _, err2 := unstructured.NestedStringMap(spec, "httpRouteTemplate", "resourceTemplates")
	if err := errors.Join(err, err2); err != nil {
		im.problem(o, "%s", err)
		return
	}
	names := gotemplate.Names{Roots: map[string]string{"Gateway": "gateway", "Values": "values"}, Resources: map[string]string{}}
	for name := range gateways {
		names.Resources[name] = id(name)
	}
	ofRoutes := gotemplate.Names{Roots: maps.Clone(names.Roots), Resources: maps.Clone(names.Resources)}
	ofRoutes.Roots["HTTPRoute"] = "route"
	for name := range routes {
		ofRoutes.Resources[name] = id(name)
	}
	var resources []any
	rights := map[string][]string{}
	add := func(name, text string, names gotemplate.Names, r map[string]any) {
		converted := gotemplate.Convert(text, names)
		for _, p := range converted.Problems {
			im.problem(o, "%s: %s", name, p)
		}
		r["id"], r["template"] = id(name), converted.Template
		if when := converted.IncludeWhen; when != "" && r["includeWhen"] != nil {
			r["includeWhen"] = fmt.Sprintf("%s && (%s)", r["includeWhen"], when)
		} else if when != "" {
			r["includeWhen"] = when
		}
		resources = append(resources, r)
		of, _ := converted.Template.(map[string]any)
		apiVersion, _ := of["apiVersion"].(string)
		kind, _ := of["kind"].(string)
		made := schema.FromAPIVersionAndKind(apiVersion, kind)
		rights[made.Group] = append(rights[made.Group], blueprint.Plural(made))
	}
	for _, name := range slices.Sorted(maps.Keys(gateways)) {
		add(name, gateways[name], names, map[string]any{})
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		add(name, routes[name], ofRoutes, map[string]any{"for": string(v1alpha1.ForRoute), "includeWhen": "route.kind == 'HTTPRoute'"})
	}
	out := map[string]any{"resources": resources}
	values, _, _ := unstructured.NestedMap(spec, "values")
	if values != nil {
		out["values"] = withoutNulls(map[string]any{"defaults": values["default"], "overrides": values["override"]})
	}
	defaults, _ := values["default"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if list, ok := defaults[name].([]any); ok && len(list) == 0 {
			im.problem(o, "values.default.%s is an empty list, in whose place nobody can give a map; write {} if it is to be one", name)
		}
	}
	if text, _, _ := unstructured.NestedString(spec, "gatewayTemplate", "status", "template"); text != "" {
		addresses, problems := gotemplate.Addresses(text, names)
		for _, p := range problems {
			im.problem(o, "status: %s", p)
		}
		out["addresses"] = addresses
	}
	if len(routes) > 0 || out["addresses"] != nil {
		out["datapath"] = string(v1alpha1.DatapathRendered)
	}
	im.add(v1alpha1.GroupVersion.String(), "GatewayBlueprint", "", o.GetName(), out)
	im.check(o, out)
	im.add(v1alpha1.GroupVersion.String(), "GatewayParameters", im.namespace, o.GetName(), map[string]any{"blueprintRef": map[string]any{"name": o.GetName()}})
	im.rights(o.GetName(), rights)
}

// check compiles what a blueprint became.
func (im *importer) check(o *unstructured.Unstructured, spec map[string]any) {
	text, err := yaml.Marshal(spec)
	var typed v1alpha1.GatewayBlueprintSpec
	if err == nil {
		err = yaml.UnmarshalStrict(text, &typed)
	}
	if err != nil {
		im.problem(o, "%s", err)
		return
	}
	_, problems := blueprint.Compile(&typed)
	for _, p := range problems {
		im.problem(o, "becomes what is no blueprint yet: %s: %s", p.Field, p.Message)
	}
}

// rights takes the ClusterRole for what a blueprint makes.
func (im *importer) rights(name string, of map[string][]string) {
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[group])
		rules = append(rules, map[string]any{
			"apiGroups": []string{group}, "resources": slices.Compact(of[group]),
			"verbs": []string{"get", "list", "watch", "create", "patch", "delete"},
		})
	}
	im.out = append(im.out, map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": "blueprint-" + name, "labels": map[string]any{blueprint.AggregateLabel: "true"}},
		"rules":    rules,
	})
}

// withoutNulls are values as an API server keeps them.
func withoutNulls(v any) any {
	if of, ok := v.(map[string]any); ok {
		maps.DeleteFunc(of, func(_ string, v any) bool { return withoutNulls(v) == nil })
	}
	return v
}

// id is the id for the name of a template: LBListener becomes lbListener.
func id(name string) string {
	upper := 0
	for upper < len(name) && name[upper] >= 'A' && name[upper] <= 'Z' {
		upper++
	}
	if upper > 1 && upper < len(name) {
		upper-- // the last one begins a word
	}
	return strings.ToLower(name[:upper]) + name[upper:]
}
