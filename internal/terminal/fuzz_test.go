package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// FuzzStatus protects terminals, and scripts that read lines, from what objects and Envoys
// say: whatever the running process answers, what is printed are lines of text.
func FuzzStatus(f *testing.F) {
	for _, v := range views() {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
		f.Add(bytes.ReplaceAll(text, []byte("shop"), []byte(`\u001b[31m\u0085\u202e`)), true)
	}
	f.Add([]byte(`{"items":null,"problems":[{"object":{"kind":"A\u0000","name":"\n"},"file":"\u001b","line":-1,"field":"\r","reason":"","message":"\u009b"}]}`), false)
	f.Fuzz(func(t *testing.T, text []byte, wide bool) {
		var v view.View
		if json.Unmarshal(text, &v) != nil {
			return
		}
		var out bytes.Buffer
		PrintStatus(&out, v, Wide(wide))
		if !utf8.Valid(out.Bytes()) {
			t.Fatalf("not UTF-8: %q", out.String())
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Fatalf("a control character at %d: %q", i, out.String())
		}
		// Off a terminal a row is a line: its columns are as wide as the widest cell.
		lines := 20
		for _, it := range v.Items {
			lines += 2 + len(it.Summary.Listeners)
		}
		lines += len(v.Problems) + len(v.Proxies)
		if n := strings.Count(out.String(), "\n"); n > lines {
			t.Fatalf("%d lines of at most %d:\n%s", n, lines, out.String())
		}
	})
}
