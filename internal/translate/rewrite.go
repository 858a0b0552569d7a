package translate

import (
	"regexp"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func (t *translation) rewrite(at position, f *gwv1.HTTPURLRewriteFilter) *ir.Rewrite {
	var r ir.Rewrite
	if f.Hostname != nil {
		r.Hostname = t.hostname(at, "urlRewrite.hostname", string(*f.Hostname))
	}
	if f.Path != nil {
		r.Path = t.pathModifier(at, "urlRewrite.path", f.Path, "?#")
	}
	if r == (ir.Rewrite{}) {
		return nil
	}
	return &r
}

// pathModifier translates what replaces a path or its prefix; forbidden are the
// characters that would end the path.
func (t *translation) pathModifier(at position, name string, m *gwv1.HTTPPathModifier, forbidden string) *ir.PathRewrite {
	switch {
	case m.Type == gwv1.FullPathHTTPPathModifier && m.ReplaceFullPath != nil:
		t.replacement(at, name+".replaceFullPath", *m.ReplaceFullPath, forbidden)
		return &ir.PathRewrite{Full: true, Value: *m.ReplaceFullPath}
	case m.Type == gwv1.PrefixMatchHTTPPathModifier && m.ReplacePrefixMatch != nil:
		if !t.prefixes {
			f := at.field(name)
			t.refuse(f, condition.PrefixRewriteNeedsPrefix(f))
		}
		if *m.ReplacePrefixMatch != "" { // the same as /
			t.replacement(at, name+".replacePrefixMatch", *m.ReplacePrefixMatch, "?#")
		}
		return &ir.PathRewrite{Value: prefix(*m.ReplacePrefixMatch)}
	default:
		f := at.field(name + ".type")
		t.refuse(f, condition.UnknownValue(f, string(m.Type), "ReplaceFullPath with replaceFullPath", "ReplacePrefixMatch with replacePrefixMatch"))
		return nil
	}
}

func (t *translation) replacement(at position, name, path, forbidden string) {
	if why := pathProblem(path, forbidden); why != "" {
		f := at.field(name)
		t.refuse(f, condition.InvalidPath(f, path, why))
	}
	if group.MatchString(path) {
		t.notes = append(t.notes, condition.NoteLiteral(at.field(name), path))
	}
}

// group is how other proxies name what an expression has matched. The Gateway API has no such thing.
var group = regexp.MustCompile(`[$\\][0-9{]`)

// pathProblem says why a path can't stand in a request line; empty if it can.
func pathProblem(path, forbidden string) string {
	if !strings.HasPrefix(path, "/") {
		return "it must begin with /"
	}
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(forbidden, c) >= 0 {
			return "percent-encode spaces, control characters, non-ASCII characters and " + strings.Join(strings.Split(forbidden, ""), " ")
		}
	}
	return ""
}

// hostname checks a name to put into a Host header or a Location.
func (t *translation) hostname(at position, name, value string) string {
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' {
			continue
		}
		f := at.field(name)
		t.refuse(f, condition.InvalidHostname(f, value))
		break
	}
	return value
}
