package messagetest

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// Most is how many bytes a text may have whose length follows from the input: the API
// server refuses a condition with a longer message.
const Most = 32 << 10

// Check fails the test unless a text is there, is UTF-8 without control characters, and
// has at most this many bytes.
func Check(t testing.TB, text string, most int) {
	t.Helper()
	switch {
	case text == "":
		t.Fatal("an empty message")
	case len(text) > most:
		t.Fatalf("a message of %d bytes, over %d: %.200q…", len(text), most, text)
	case !utf8.ValidString(text):
		t.Fatalf("a message that is not UTF-8: %.400q", text)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			t.Fatalf("a message with the control character %q: %.400q", r, text)
		}
	}
}

// Error is Check of an error's text.
func Error(t testing.TB, err error, most int) {
	t.Helper()
	Check(t, err.Error(), most)
}
