package object_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// FuzzParseName protects everything that is keyed by a name from outside: a text is the
// name that is written as this text, or none.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"ns/name", "", "/", "a/", "/b", "a/b/c", "a//b", "a\x00/\xff", "ns/name/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := object.ParseName(text)
		switch {
		case !ok && !name.IsZero():
			t.Fatalf("%q is no name, and yet %v", text, name)
		case ok && (name.String() != text || name.Namespace == "" || name.Name == "" || strings.Contains(name.Name, "/")):
			t.Fatalf("%q is read as %+v", text, name)
		}
		// A key comes in JSON, in what the running process is asked for.
		var key object.Key
		if json.Unmarshal([]byte(text), &key) != nil {
			return
		}
		written, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		var back object.Key
		if err := json.Unmarshal(written, &back); err != nil || back != key {
			t.Fatalf("%s is read as %+v (%v), want %+v", written, back, err, key)
		}
	})
}
