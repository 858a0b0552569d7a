package topology

import (
	"math"
	"strings"
)

// A hostname pattern is exact, *.suffix, or empty for any. A wildcard stands for
// one or more labels: *.example.com covers a.b.example.com and not example.com.

// covers reports whether every host that matches o matches p.
func covers(p, o string) bool {
	switch {
	case p == "":
		return true
	case isWildcard(p):
		return strings.HasSuffix(o, p[1:])
	default:
		return p == o
	}
}

// intersect returns the pattern of the hosts that match both. Two patterns either
// nest or have nothing in common.
func intersect(a, b string) (string, bool) {
	switch {
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	default:
		return "", false
	}
}

// specificity orders patterns that cover the same host: exact ones first, then
// longer wildcards, then any.
func specificity(p string) int {
	if p != "" && !isWildcard(p) {
		return math.MaxInt
	}
	return len(p)
}

// Wider returns the next wider pattern: the wildcard for the parent domain, and
// any host at last.
func Wider(p string) string {
	_, rest, ok := strings.Cut(strings.TrimPrefix(p, "*."), ".")
	if !ok {
		return ""
	}
	return "*." + rest
}

func isWildcard(p string) bool { return strings.HasPrefix(p, "*.") }

// domain is a pattern's name as a host of a route table.
func domain(p string) string {
	if p == "" {
		return "*"
	}
	return p
}
