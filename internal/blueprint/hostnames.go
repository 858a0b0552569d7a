package blueprint

import (
	"slices"
	"strings"
)

// Hostnames are those of a Gateway: of its listeners and of the routes that are attached.
type Hostnames struct {
	// Union has each, sorted.
	Union []string
	// Intersection has those of them that no wildcard among them stands for, sorted.
	Intersection []string
}

// HostnamesOf is the hostnames of a Gateway.
func HostnamesOf(hostnames []string) Hostnames {
	union := slices.Clone(hostnames)
	slices.Sort(union)
	union = slices.Compact(slices.DeleteFunc(union, func(h string) bool { return h == "" }))
	out := Hostnames{Union: union}
	for _, h := range union {
		if !slices.ContainsFunc(union, func(w string) bool { return w != h && covers(w, h) }) {
			out.Intersection = append(out.Intersection, h)
		}
	}
	return out
}

// covers reports whether a wildcard stands for a hostname. As in the Gateway API it does for any
// number of labels in its place, and not for the domain itself.
func covers(wildcard, hostname string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && strings.HasSuffix(strings.TrimPrefix(hostname, "*"), suffix) && len(hostname) > len(suffix)
}
