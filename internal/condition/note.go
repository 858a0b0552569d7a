package condition

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Noted adds to a condition's message something that is good to know. It does not
// change the condition's status.
func Noted(c metav1.Condition, notes ...string) metav1.Condition {
	for _, n := range notes {
		c.Message = printable(c.Message + "; " + n)
	}
	return c
}

// NoteCertificateNames says that no certificate of a listener is for a host that it
// takes.
func NoteCertificateNames(hostname string, names []string) string {
	have := "name no host"
	if len(names) > 0 {
		have = "are for " + join(names, ", ")
	}
	return fmt.Sprintf(certificateForOthers+"%q, since they %s", hostname, have)
}

// NoteCertificateKept says that the last pair of a Secret that could be used stays in
// force: until then, where the Secret was deleted, else until is zero.
func NoteCertificateKept(expires, until time.Time) string {
	note := certificateKept
	if !until.IsZero() {
		note += fmt.Sprintf(" until %s", until.UTC().Format(time.RFC3339))
	}
	return note + fmt.Sprintf(", and expires at %s; it is in memory only, so mend the Secret before Gatehouse starts anew", expires.UTC().Format(time.RFC3339))
}

// NoteCertificateExpires says until when a certificate is valid that should have been
// renewed by now.
func NoteCertificateExpires(secret string, at time.Time) string {
	return fmt.Sprintf("the certificate in Secret %s"+certificateExpires+"%s; renew it", secret, at.UTC().Format(time.RFC3339))
}

// NoteShadowed says that a rule of a route never gets a request for a host, and for which one's sake.
func NoteShadowed(rule int, host, winner string) string {
	return fmt.Sprintf("rule %d gets no requests for host %q by a match that %s has too, which goes first", rule, host, winner)
}

// NoteLoginPath says that a rule doesn't get the requests for a path of a host, at which people log
// in or out by a policy.
func NoteLoginPath(rule int, host, path, policy string) string {
	return fmt.Sprintf("rule %d gets no requests for %q of host %q, which is a path of the login of %s; if your application needs it, have that one use another callbackPath or logoutPath", rule, path, host, policy)
}

// NoteMore says how many further notes there are.
func NoteMore(n int) string { return fmt.Sprintf("and %d more of that", n) }

// NoteNoBackends says what a rule without backends and without a redirect does.
func NoteNoBackends(field string) string {
	return field + ": there is none, so that all requests of the rule get an error"
}

// NoteLiteral says that a path with what looks like a reference to a group is taken as it is.
func NoteLiteral(field, value string) string {
	return fmt.Sprintf("%s: %q is taken as it is written, for there are no groups of an expression to refer to", field, value)
}

// PlainBesideRedirect notes at a route that it is served in clear text on a host on which others are sent on to HTTPS.
func PlainBesideRedirect(host string) string {
	of := "host " + host
	if host == "*" {
		of = "hosts of no other route"
	}
	return "it is served over plain HTTP too, on " + of + ", beside a redirect to HTTPS: name the HTTPS listener in sectionName of its parentRefs if that is not meant"
}

// RouteNotes is what an Accepted condition of a route says beside that all is well; empty
// for nothing, and where not all is well.
func RouteNotes(c metav1.Condition) string {
	notes, ok := strings.CutPrefix(c.Message, RouteAccepted().Message+"; ")
	if !ok {
		return ""
	}
	return notes
}
