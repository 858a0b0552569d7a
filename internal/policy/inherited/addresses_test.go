package inherited

import "testing"

// Ranges are those of the addresses that clients have, however they are written.
func TestAddressRanges(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/24": "192.0.2.0/24", "192.0.2.7": "192.0.2.7/32", "2001:db8::1": "2001:db8::1/128", "::/0": "::/0",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0",
		"::ffff:192.0.2.0/64": "", "fe80::1%eth0": "", "192.0.2.0/33": "", "192.0.2": "", "office": "", "": "",
	} {
		got, ok := addressRange(text)
		if ok != (want != "") || ok && got.Masked().String() != want {
			t.Errorf("%q: %v %t, want %q", text, got, ok, want)
		}
	}
}
