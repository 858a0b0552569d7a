package file

import (
	"bytes"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// FuzzRead throws any text at the splitter, the parsers and the validators: none
// may panic, lose text between documents, or report lines that don't exist.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		config("a", "1") + "---\n" + config("b", "2"),
		"--- {a: &x [1, *x]}\n...\n%YAML 1.2\n---\n<<: *x\n",
		`{"apiVersion":"v1","kind":"List","items":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"k":"eA=="}}]} {`,
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [{matches: [{path: {value: x}}]}]}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: s, labels: 1}\nspec: {ports: [{port: 1e9, targetPort: .inf}]}\n",
		"a: &a\n  <<: [*a, {b: !!binary x}]\n? [complex]\n: key\n",
		"\xef\xbb\xbf---\r\n\ta: 0o17\r\n",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	validator, err := schema.New(kind.All, true)
	if err != nil {
		f.Fatal(err)
	}
	r := &reader{validator: validator, foreign: func(string, string) {}}
	f.Fuzz(func(t *testing.T, text []byte, isJSON bool) {
		lines := 1 + bytes.Count(text, []byte{'\n'})
		for _, c := range split(text) {
			if c.line < 1 || c.line > lines {
				t.Fatalf("document at line %d of %d", c.line, lines)
			}
			doc := r.read(c.text, isJSON, nil)
			faults := doc.faults()
			for _, def := range doc.definitions() {
				if (def.object == nil) == (len(def.faults()) == 0) {
					t.Fatalf("%s has object %v and faults %v", def.key(), def.object, def.faults())
				}
				faults = append(faults, def.faults()...)
			}
			for _, flt := range faults {
				if line := c.line + flt.line; line < 1 || line > lines+1 {
					t.Fatalf("fault %q at line %d of %d", flt.message, line, lines)
				}
				printed := source.Problem{Field: flt.field, Message: flt.message, Reason: flt.reason}.Error()
				messagetest.Check(t, printed, 6*len(text)+4000)
			}
		}
	})
}
