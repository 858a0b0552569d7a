package file

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// TestGuess protects that what refers to an object in a broken text can say what it waits for,
// and that nothing is guessed where the text doesn't say it.
func TestGuess(t *testing.T) {
	v, err := schema.New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	gateway := func(namespace, name string) object.Key {
		return object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: namespace, Name: name}}
	}
	const head = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n"
	for name, c := range map[string]struct {
		text string
		want object.Key
	}{
		"flow":             {head + "metadata: {name: web, namespace: infra}\nspec: [\n", gateway("infra", "web")},
		"block":            {head + "metadata:\n  labels:\n    name: no\n  name: \"web\" # it\n  namespace: infra\nspec: [\n", gateway("infra", "web")},
		"tabs":             {head + "metadata:\n\tname: web\nspec:\n", gateway("default", "web")},
		"after the rest":   {"spec:\n\tname: no\nmetadata:\n  name: web\nkind: Gateway\napiVersion: gateway.networking.k8s.io/v1\r\n", gateway("default", "web")},
		"a misspelt kind":  {"apiVersion: gateway.networking.k8s.io/v1\nkind: Gatway\nmetadata: {name: web}\nspec: [\n", gateway("default", "web")},
		"no name":          {head + "metadata: {}\nspec:\n  name: no\n", object.Key{}},
		"no kind":          {"apiVersion: v1\nmetadata: {name: web}\n", object.Key{}},
		"nothing of ours":  {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n", object.Key{}},
		"no YAML whatever": {"\x00\xff{{{", object.Key{}},
	} {
		if got := (&reader{validator: v}).guess([]byte(c.text)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
