package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Patterns of the schemas, as errors quote them.
const (
	label        = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	subdomain    = label + `(\.` + label + `)*`
	hostOrSuffix = `^(\*\.)?` + subdomain + `$`
)

// patternInWords says what a value should be that doesn't match a pattern; empty where the
// pattern is not one that many people run into.
func patternInWords(err *field.Error, detail string) string {
	text, ok := err.BadValue.(string)
	_, pattern, found := strings.Cut(detail, "should match '")
	if !ok || !found {
		return ""
	}
	switch pattern = strings.TrimSuffix(pattern, "'"); pattern {
	case hostOrSuffix:
		return fmt.Sprintf("%q is not a host name: %s", text, hostAdvice(text, true))
	case "^" + subdomain + "$":
		if strings.HasSuffix(err.Field, "ostname") {
			return fmt.Sprintf("%q is not a host name: %s", text, hostAdvice(text, false))
		}
		return fmt.Sprintf("%q is not a name: use small letters, digits, - and dots, with a letter or a digit at both ends", text)
	case "^" + label + "$":
		return fmt.Sprintf("%q is not a name: use small letters, digits and -, with a letter or a digit at both ends", text)
	case `^([0-9]{1,5}(h|m|s|ms)){1,4}$`:
		return fmt.Sprintf("%q is not a duration: write it with a unit, such as 500ms, 10s or 1h30m", text)
	case "^/":
		return fmt.Sprintf("%q is not a path: begin it with /", text)
	}
	return ""
}

// hostAdvice says what to write in the place of a host that is none.
func hostAdvice(text string, wildcard bool) string {
	host := hostOf(text)
	if !isHost(host, wildcard) {
		return unusableHost(text, wildcard)
	}
	switch {
	case strings.Contains(text, "://"):
		return fmt.Sprintf("write %q, without what is before and behind it; listeners say the protocol and rules the path", host)
	case strings.Contains(text, "/"):
		return fmt.Sprintf("write %q; a path belongs to the matches of a rule", host)
	case strings.Contains(text, ":"):
		return fmt.Sprintf("write %q, without the port, which the listeners of the Gateway say", host)
	case host != text:
		return fmt.Sprintf("write %q", host)
	}
	return unusableHost(text, wildcard)
}

// unusableHost is hostAdvice for what has no host in it that could be written.
func unusableHost(text string, wildcard bool) string {
	advice := "use small letters, digits, - and dots, with a letter or a digit at both ends of each part"
	if wildcard && strings.Contains(text, "*") {
		advice = `a * can only stand for what is before the first dot, as in "*.example.com"; leave hostnames out for every host`
	}
	switch {
	case strings.Contains(text, "/"):
		advice += "; leave out what is before and behind the host, too"
	case strings.Contains(text, ":"):
		advice += "; leave out the port, too, which the listeners of the Gateway say"
	}
	return advice
}

// isHost reports whether a host, or a wildcard where that may be, can be written as it is.
func isHost(host string, wildcard bool) bool {
	return len(validation.IsDNS1123Subdomain(host)) == 0 || wildcard && len(validation.IsWildcardDNS1123Subdomain(host)) == 0
}

// hostOf returns the host in what people write in its place: an URL, a host with a port,
// with a path, or with the dot at its end.
func hostOf(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	if i := strings.IndexAny(text, "/?#:"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}
