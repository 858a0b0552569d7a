//go:build ignore

// Command gen writes what follows from the types: their deep copies, the
// CustomResourceDefinition in config/crd, and the reference in docs.
//
// Left out of the latter are the descriptions of fields that are Kubernetes' own,
// which would be five sixths of the bytes: `kubectl apply` keeps the whole text in
// an annotation, for which there are 256 KiB.
package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	directory = "../../config/crd"
)

// references are the kinds whose fields have a page.
var references = map[string]page{
	"GatewayParameters": {"../../docs/reference/parameters.md", `# Parameters

The fields of ` + "`spec`" + ` of GatewayParameters (gatehouse.dev/v1alpha1), and, for those of a
GatewayClass, of ` + "`spec.overrides`" + `. [Parameters](../guide/parameters.md) explains how to use
them. This page is generated: ` + "`go generate ./api/...`" + ` writes it.
`, []string{"overrides"}},
	"TrafficPolicy": {"../../docs/reference/traffic.md", `# Traffic

The settings of a TrafficPolicy (gatehouse.dev/v1alpha1), in ` + "`spec`" + `, ` + "`spec.defaults`" + ` or
` + "`spec.overrides`" + `. [Traffic](../guide/traffic.md) explains how to use them. This page is generated:
` + "`go generate ./api/...`" + ` writes it.
`, []string{"defaults", "overrides", "targetRefs", "targetSelectors"}},
}

// page is where fields are documented.
type page struct {
	path, intro string
	without     []string // fields that the page doesn't have
}

// foreign are the fields whose types are Kubernetes' own.
var foreign = map[string]bool{
	"affinity": true, "backendRef": true, "behavior": true, "containers": true, "env": true, "imagePullSecrets": true,
	"initContainers": true, "lifecycle": true, "resources": true, "samplingFraction": true, "securityContext": true,
	"strategy": true, "tolerations": true, "topologySpreadConstraints": true, "updateStrategy": true,
	"volumeMounts": true, "volumes": true,
}

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate() error {
	cmd := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "controller-gen",
		"object", "crd", "paths=.", "output:crd:dir="+directory)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("controller-gen: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(directory, "gatehouse.dev_*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := shorten(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func shorten(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// The typed form would add an empty status, which is for the API server to write.
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		if crd.Spec.Names.Kind == "GatewayBlueprint" {
			break // its resources are ours
		}
		spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		walk(&spec)
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	}
	if page, ok := references[crd.Spec.Names.Kind]; ok {
		if err := page.document(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]); err != nil {
			return err
		}
	}
	object["spec"] = crd.Spec
	if text, err = yaml.Marshal(object); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), text...), 0o644)
}

// walk looks for fields that are Kubernetes' own. The metrics of an autoscaler are,
// those of a proxy are not.
func walk(s *apiextensionsv1.JSONSchemaProps) {
	_, autoscaling := s.Properties["maxReplicas"]
	for name, child := range s.Properties {
		if foreign[name] || autoscaling && name == "metrics" {
			own := child.Description
			strip(&child)
			child.Description = own
		} else {
			walk(&child)
		}
		s.Properties[name] = child
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema)
	}
}

func strip(s *apiextensionsv1.JSONSchemaProps) {
	s.Description = ""
	for name, child := range s.Properties {
		strip(&child)
		s.Properties[name] = child
	}
	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema)
	}
}

// document writes the page, from the descriptions that have been left.
func (p page) document(spec apiextensionsv1.JSONSchemaProps) error {
	var b strings.Builder
	b.WriteString(p.intro)
	for _, name := range slices.Sorted(maps.Keys(spec.Properties)) {
		s := spec.Properties[name]
		if slices.Contains(p.without, name) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", name, s.Description)
		rows := fields("", &s)
		if s.Items != nil {
			rows = fields("", s.Items.Schema)
		}
		if len(rows) > 0 {
			b.WriteString("\n| field | type | |\n|---|---|---|\n" + strings.Join(rows, ""))
		}
	}
	return os.WriteFile(p.path, []byte(b.String()), 0o644)
}

// fields returns the rows of an object's fields.
func fields(under string, s *apiextensionsv1.JSONSchemaProps) (rows []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		path := under + name
		at := &child
		if child.Type == "array" && child.Items != nil {
			at = child.Items.Schema
		}
		description := strings.NewReplacer("\n", " ", "|", "\\|").Replace(child.Description)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", path, typeText(&child), description))
		if foreign[name] || name == "metrics" && under == "autoscaling." {
			continue
		}
		next := path + "."
		if at != &child {
			next = path + "[]."
		}
		rows = append(rows, fields(next, at)...)
	}
	return rows
}

func typeText(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString && strings.Contains(s.Pattern, "Mi"):
		return "number or quantity"
	case s.XIntOrString:
		return "number or percentage"
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			values[i] = strings.Trim(string(v.Raw), `"`)
		}
		return strings.Join(values, ", ")
	case s.Type == "array":
		return "list"
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map"
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum)
	case strings.Contains(s.Pattern, "h|m|s|ms"):
		return "duration"
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}
