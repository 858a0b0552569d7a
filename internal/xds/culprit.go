package xds

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// culpritsOf returns the resources of a refused response that are at fault, each with its
// part of the message, fit to be shown; none if the message names none.
//
// Envoy names every cluster and listener that it refuses, and accepts the others:
// "Error adding/updating cluster(s) a: …, b: …" (listeners are separated by line ends).
// Values that break the proto rules, and all other types, are refused without a name.
func culpritsOf(atFault string, set []*envoy.Resource, message string) map[string]string {
	if len(set) == 1 {
		return map[string]string{set[0].Name: clean(strip(atFault, set[0].Name, message))}
	}
	list, ok := strings.CutPrefix(message, atFault)
	if !ok || atFault == "" {
		return nil
	}
	type mention struct {
		name      string
		from, end int // of the name, and of its text
	}
	var found []mention
	for _, r := range set {
		if at := mentioned(list, r.Name); at >= 0 {
			found = append(found, mention{r.Name, at, len(list)})
		}
	}
	slices.SortFunc(found, func(a, b mention) int { return a.from - b.from })
	out := make(map[string]string, len(found))
	for i, m := range found {
		if i+1 < len(found) {
			m.end = found[i+1].from
		}
		out[m.name] = clean(strings.Trim(list[m.from+len(m.name)+len(": "):m.end], ", \n"))
	}
	return out
}

// mentioned returns where a list of culprits names a resource, or -1.
func mentioned(list, name string) int {
	for at := 0; ; {
		i := strings.Index(list[at:], name+": ")
		if i < 0 {
			return -1
		}
		at += i
		if at == 0 || strings.HasSuffix(list[:at], ", ") || list[at-1] == '\n' {
			return at
		}
		at += len(name)
	}
}

// strip removes the beginning of a message, which names the resource that it is shown with.
func strip(atFault, name, message string) string {
	if list, ok := strings.CutPrefix(message, atFault); ok && atFault != "" {
		return strings.TrimSpace(strings.TrimPrefix(list, name+": "))
	}
	return message
}

// maxMessage is how much of a refusal is kept, in bytes.
const maxMessage = 1024

// maxRefusal is how much of a refusal is read, in bytes. Envoy names all the resources of a
// response that it refuses; each of them is looked for in the text.
const maxRefusal = 1 << 20

// The refusal of a response that Envoy can't parse quotes all of it, also keys.
var pem = regexp.MustCompile(`(?s)-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)`)

// clean makes a proxy's message fit to be logged and shown: bounded, printable, without
// keys, and never empty.
func clean(message string) string {
	message = printable(pem.ReplaceAllString(strings.ToValidUTF8(message, "?"), "[redacted]"))
	return cmp.Or(shortened(message, maxMessage), "it says nothing")
}

// printable makes one line of a text that a proxy has sent, without what does something else
// on a terminal or in a file than to be read: control codes, and marks that turn the
// direction of writing round.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		default:
			return r
		}
	}, text))
}

// shortened cuts a text to so many bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, most-len("…"))], "") + "…"
}
