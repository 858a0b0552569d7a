package configuration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
)

// FuzzParse protects the controller from a configuration that nobody meant: what is read
// is valid, and written it is the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", head, head + "log: {level: debug}\nports: {metrics: 0}\nsources: [{files: {paths: [/etc/x]}}, {kubernetes: {namespaces: [a]}}]\n",
		head + "sources: []\n", head + "ports: {metrics: -1}\n", head + "leaderElection: {leaseDuration: 1h}\n", head + "a: &a [*a]\n", "[]", "null",
		head + "apiServer: {qps: .inf}\n", head + "log: {levels: {xds: debug}}\nidentity: {life: 1s}\n", "\x00", head + "kind: Configuration\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			// The library writes a line for each fault.
			messagetest.Check(t, strings.ReplaceAll(err.Error(), "\n", " "), 6*len(text)+4000)
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("what is read is not valid: %v", err)
		}
		written, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("what is written can't be read: %v\n%s", err, written)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatalf("what is written is read as something else:\n%s", diff)
		}
	})
}
