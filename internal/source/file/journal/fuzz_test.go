package journal

import (
	"bytes"
	"testing"
)

// FuzzParse holds that any bytes can be read, and that what is read is what was written.
func FuzzParse(f *testing.F) {
	text := []byte(header)
	for i := range some {
		text = some[i].appendTo(text)
	}
	f.Add(text)
	f.Add(text[:len(text)-3])
	f.Add([]byte(header))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		records, good := parse(text)
		if good > len(text) {
			t.Fatalf("%d of %d bytes are good", good, len(text))
		}
		// A record's own bytes, with any hash: the parser of fields sees what the hash would
		// keep from it.
		var r Record
		r.Object = text
		one := r.appendTo(nil)
		if back, rest, ok := next(one); !ok || len(rest) > 0 || !bytes.Equal(back.Object, text) {
			t.Fatalf("%q is read as %q", text, back.Object)
		}
		p := parser{rest: text}
		_, _, _, _ = p.text(), p.signed(), p.number(), p.text()

		again := []byte(header)
		for i := range records {
			again = records[i].appendTo(again)
		}
		if good == 0 {
			return
		}
		if back, n := parse(again); n != len(again) || len(back) != len(records) {
			t.Fatalf("%d records become %d", len(records), len(back))
		}
	})
}
