package echo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bye is the last line that a TCP backend sends when the client has closed its side.
const Bye = "bye"

// Line is what a TCP or UDP backend answers, "name: text". A backend that speaks TLS
// adds the session after its name: "name {"version":"TLS 1.3"}: text".
type Line struct {
	Name string
	TLS  *TLSInfo
	Text string
}

// String is the line as it is sent, without its end.
func (l Line) String() string {
	if l.TLS == nil {
		return l.Name + ": " + l.Text
	}
	info, err := json.Marshal(l.TLS)
	if err != nil {
		return l.Name + ": " + err.Error()
	}
	return fmt.Sprintf("%s %s: %s", l.Name, info, l.Text)
}

// ParseLine reads what [Line.String] writes.
func ParseLine(text string) (Line, error) {
	end := strings.IndexAny(text, " :")
	if end <= 0 {
		return Line{}, fmt.Errorf("%q is no answer of an echo backend", text)
	}
	l := Line{Name: text[:end]}
	rest := text[end:]
	if strings.HasPrefix(rest, " {") {
		r := json.NewDecoder(strings.NewReader(rest))
		if err := r.Decode(&l.TLS); err != nil {
			return Line{}, fmt.Errorf("%q is no answer of an echo backend: %w", text, err)
		}
		rest = rest[r.InputOffset():]
	}
	var ok bool
	if l.Text, ok = strings.CutPrefix(rest, ": "); !ok {
		return Line{}, fmt.Errorf("%q is no answer of an echo backend", text)
	}
	return l, nil
}
