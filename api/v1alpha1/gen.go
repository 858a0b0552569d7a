//go:build ignore

// Command gen writes what follows from the types: their deep copies, and the
// CustomResourceDefinition in config/crd.
//
// Left out of the latter are the descriptions of fields that are Kubernetes' own,
// which would be five sixths of the bytes: `kubectl apply` keeps the whole text in
// an annotation, for which there are 256 KiB.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const directory = "../../config/crd"

// foreign are the fields whose types are Kubernetes' own.
var foreign = map[string]bool{
	"affinity": true, "behavior": true, "containers": true, "env": true, "imagePullSecrets": true,
	"initContainers": true, "resources": true, "samplingFraction": true, "securityContext": true,
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
		spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		walk(&spec)
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
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
