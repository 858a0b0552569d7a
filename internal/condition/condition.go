package condition

import (
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// build makes a condition. The type parameters accept the Gateway API's string
// types, which differ from kind to kind.
func build[T, R ~string](kind T, status metav1.ConditionStatus, reason R, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: printable(message)}
}

// maxMessage is the longest message that an API server takes, in bytes. With a longer one
// it would refuse the whole status.
const maxMessage = 32 << 10

// printable makes a message fit for a status and a terminal. Messages repeat what objects
// say, and the schemas let names of references be any text.
func printable(message string) string {
	message = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	return message
}

func yes[T, R ~string](kind T, reason R, message string) metav1.Condition {
	return build(kind, metav1.ConditionTrue, reason, message)
}

func no[T, R ~string](kind T, reason R, message string) metav1.Condition {
	return build(kind, metav1.ConditionFalse, reason, message)
}

// listed is how many parts of a list a message shows.
const listed = 5

// join writes a list with sep between its parts. It stops after a handful of parts,
// because nobody reads a message with hundreds of them.
func join(parts []string, sep string) string { return upTo(listed, parts, sep, sep+"and %d more") }

// upTo writes as many parts of a list, and how many more there are.
func upTo(most int, parts []string, sep, more string) string {
	if len(parts) <= most {
		return strings.Join(parts, sep)
	}
	return strings.Join(parts[:most], sep) + fmt.Sprintf(more, len(parts)-most)
}

// quoted is join with each part in quotes.
func quoted(names []string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%q", n)
	}
	return join(parts, ", ")
}

// Find returns the condition of a type.
func Find(list []metav1.Condition, kind string) (metav1.Condition, bool) {
	for _, c := range list {
		if c.Type == kind {
			return c, true
		}
	}
	return metav1.Condition{}, false
}

// listenersNamed names listeners as the subject of a sentence does.
func listenersNamed(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("listener %q", names[0])
	}
	return "listeners " + quoted(names)
}
