package terminal

import (
	"slices"
	"testing"
)

// TestDecoder protects keys that come in pieces, as over a slow connection.
func TestDecoder(t *testing.T) {
	var d decoder
	var have []key
	for _, piece := range []string{"j\x1b", "[", "6", "~", "\xc3", "\xa9", "\x1b[1;5", "B", "\x1bx", "\x0c", "\x1b[?1;2c", "\x1b[99z"} {
		for _, k := range d.feed([]byte(piece)) {
			have = append(have, k.key)
		}
	}
	if want := []key{'j', keyPageDown, 'é', keyDown, keyRedraw}; !slices.Equal(have, want) {
		t.Errorf("the keys are %v, want %v", have, want)
	}
	if d.waits() {
		t.Errorf("it waits after %q", d.rest)
	}
	if k := d.feed([]byte("\x1b")); len(k) > 0 || !d.waits() {
		t.Errorf("what may be the beginning of a key is %v", k)
	}
	if k := d.flush(); len(k) != 1 || k[0].key != keyEscape {
		t.Errorf("Escape alone is %v", k)
	}
}

// A file that is pasted by mistake into what is asked for doesn't grow what each key draws.
func TestTypedIsBounded(t *testing.T) {
	b := newBrowser()
	b.take(keystroke{key: 'f'})
	for range 10 * maxTyped {
		b.take(keystroke{key: 'x', pasted: true})
	}
	if len(b.typed) != maxTyped {
		t.Errorf("%d characters are kept", len(b.typed))
	}
}
