package main

import (
	"bytes"
	"strings"
	"testing"
)

// gatehouse runs a command, and returns what it prints and its exit code.
func gatehouse(args ...string) (out, problems string, code int) {
	root := newRoot()
	var stdout, stderr bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	cmd, err := root.ExecuteC()
	return stdout.String(), stderr.String(), exitCode(cmd, err)
}

// TestBlueprintCases holds blueprints against golden files, as their authors do: the values of thirteen levels and
// the hostnames that the controller has which had blueprints first, its texts, PEM blocks in them, copies
// of routes, addresses of live objects, and mistakes.
func TestBlueprintCases(t *testing.T) {
	out, problems, code := gatehouse("blueprint", "test", "testdata/blueprint")
	if code != 0 || strings.Count(out, "ok\t") != 4 {
		t.Errorf("%d\n%s%s", code, out, problems)
	}
}

// TestBlueprintLibrary holds the blueprints that users begin with against their cases.
func TestBlueprintLibrary(t *testing.T) {
	for dir, cases := range map[string]int{"public-web": 3, "internal-web": 1, "facade": 2, "alb-crossplane": 2} {
		out, problems, code := gatehouse("blueprint", "test", "../../blueprints/"+dir)
		if code != 0 || strings.Count(out, "ok\t") != cases {
			t.Errorf("%s: %d\n%s%s", dir, code, out, problems)
		}
	}
}

const (
	classFile     = "testdata/blueprint/class.yaml"
	blueprintFile = "testdata/blueprint/blueprint.yaml"
)

// TestBlueprintValues shows each value with who says it.
func TestBlueprintValues(t *testing.T) {
	out, problems, code := gatehouse("blueprint", "values", classFile, blueprintFile, "testdata/blueprint/values/input.yaml")
	want := `Gateway shop/edge
  nested.a  "blueprint-override"        from GatewayBlueprint web
  nested.b  "blueprint"                 from GatewayBlueprint web
  nested.c  "gateway-override"          from GatewayValues shop/edge
  size      "small"                     from GatewayBlueprint web
  v1        "blueprint-override"        from GatewayBlueprint web
  v10       "class-namespace-override"  from GatewayClassValues shop/namespace
  v2        "class-override"            from GatewayClassValues gatehouse-system/class
  v3        "class-here-override"       from GatewayClassValues shop/class-here
  v4        "gateway-override"          from GatewayValues shop/edge
  v5        "class"                     from GatewayClassValues gatehouse-system/class
  v6        "class-here"                from GatewayClassValues shop/class-here
  v7        "gateway"                   from GatewayValues shop/edge
  v8        "blueprint"                 from GatewayBlueprint web
  v9        "namespace"                 from GatewayValues shop/namespace
`
	if code != 0 || out != want {
		t.Errorf("%d\n%s%s", code, out, problems)
	}
}

// TestBlueprintRank has two objects of the same rank: the older one has more authority.
func TestBlueprintRank(t *testing.T) {
	out, problems, code := gatehouse("blueprint", "values", classFile, blueprintFile, "testdata/blueprint/rank/input.yaml")
	said := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		`list ["c"] from GatewayValues shop/earlier-by-name`, `size "large" from GatewayValues shop/earlier-by-name`, `over "older" from GatewayValues shop/older`,
	} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("%d: no %s in\n%s%s", code, want, out, problems)
		}
	}
}

// TestBlueprintMistakes end with 1, and name the object and the field.
func TestBlueprintMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"render", classFile, blueprintFile, "testdata/blueprint/mistake/input.yaml"}, exitFailed, "GatewayValues shop/edge: Invalid: The values are not in force for Gateway shop/edge: spec.defaults.size"},
		{[]string{"render", classFile, blueprintFile, "testdata/blueprint/waits/input.yaml"}, 0, ""},
		{[]string{"render", classFile, "testdata/blueprint/waits/input.yaml"}, exitFailed, "GatewayBlueprint web, which doesn't exist"},
		{[]string{"render"}, exitUsage, ""},
		{[]string{"render", classFile, "--gateway", "edge"}, exitUsage, ""},
		{[]string{"test", "testdata"}, exitFailed, ""},
	} {
		if _, problems, code := gatehouse(append([]string{"blueprint"}, c.args...)...); code != c.code || !strings.Contains(problems, c.says) {
			t.Errorf("%v: %d %s", c.args, code, problems)
		}
	}
}
