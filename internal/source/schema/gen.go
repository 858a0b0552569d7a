//go:build ignore

// Command gen writes crds/: the Gateway API's CustomResourceDefinitions of the
// version that go.mod requires, one JSON file per channel and kind, those of
// ServiceImports, of InferencePools, and our own.
//
// Left out is what plays no part in validation and would be two thirds of the
// bytes: descriptions, and the schema of status, which the API server drops from
// what a user writes before it validates.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The modules whose CustomResourceDefinitions there are.
const (
	gatewayAPI   = "sigs.k8s.io/gateway-api"
	multiCluster = "sigs.k8s.io/mcs-api"
	inference    = "sigs.k8s.io/gateway-api-inference-extension"
)

// skipped kinds belong to service meshes, which Gatehouse doesn't configure.
var skipped = map[string]bool{"XMesh": true, "XTelemetryPolicy": true}

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate() error {
	gateway, err := definitions(gatewayAPI)
	if err != nil {
		return err
	}
	services, err := definitions(multiCluster)
	if err != nil {
		return err
	}
	pools, err := definitions(inference)
	if err != nil {
		return err
	}
	for dir, pattern := range map[string]string{
		"standard":     filepath.Join(gateway, "standard", "gateway.networking.*.yaml"),
		"experimental": filepath.Join(gateway, "experimental", "gateway.networking.*.yaml"),
		"multicluster": filepath.Join(services, "*_serviceimports.yaml"),
		"inference":    filepath.Join(pools, "bases", "inference.networking.k8s.io_*.yaml"),
		"own":          filepath.Join("..", "..", "..", "config", "crd", "*.yaml"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		dir := filepath.Join("crds", dir)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, file := range files {
			if err := convert(file, dir); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// definitions are where a module has them.
func definitions(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("locate module %s: %w", module, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "config", "crd"), nil
}

func convert(file, dir string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	if crd.Kind != "CustomResourceDefinition" || skipped[crd.Spec.Names.Kind] {
		return nil
	}
	for _, version := range crd.Spec.Versions {
		delete(version.Schema.OpenAPIV3Schema.Properties, "status")
	}
	text, err = json.Marshal(crd.Spec.Versions)
	if err != nil {
		return err
	}
	var versions any
	if err := json.Unmarshal(text, &versions); err != nil {
		return err
	}
	for _, version := range versions.([]any) {
		delete(version.(map[string]any), "additionalPrinterColumns")
	}
	strip(versions, false)

	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(versions); err != nil {
		return err
	}
	name := strings.ToLower(crd.Spec.Names.Kind) + ".json"
	return os.WriteFile(filepath.Join(dir, name), buf.Bytes(), 0o644)
}

// strip removes descriptions. properties is true when node's keys are the names
// of fields, one of which may well be called "description".
func strip(node any, properties bool) {
	switch node := node.(type) {
	case map[string]any:
		if _, text := node["description"].(string); text && !properties {
			delete(node, "description")
		}
		for key, child := range node {
			strip(child, key == "properties" && !properties)
		}
	case []any:
		for _, child := range node {
			strip(child, false)
		}
	}
}
