package translate

import (
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// extension is what a RouteFilter asks for.
type extension struct {
	status   uint32 // of a direct answer; 0 for none
	body     string
	rewrite  *ir.Rewrite
	request  *ir.HeaderChanges
	response *ir.HeaderChanges
}

// RouteFilter says what is wrong with a RouteFilter, beside the objects that it refers to.
func RouteFilter(f *topology.RouteFilter) []string {
	_, problems := extensionOf(f)
	return problems
}

// filterReader reads a RouteFilter, by the checks that routes have.
type filterReader struct {
	translation
	own []string
}

func (r *filterReader) problem(field, format string, args ...any) {
	r.own = append(r.own, field+" "+fmt.Sprintf(format, args...))
}

func extensionOf(f *topology.RouteFilter) (out extension, problems []string) {
	var r filterReader
	spec := &f.Object.Spec
	if d := spec.DirectResponse; d != nil {
		out.status, out.body = uint32(d.Status), f.Body //nolint:gosec // from 200 to 599, or a problem
		if d.Status < 200 || d.Status > 599 {
			r.problem("spec.directResponse.status", "is %d; it must be from 200 to 599", d.Status)
		}
		if len(f.Body) > ir.MaxBody {
			r.problem("spec.directResponse", "has a body of %d bytes; at most %d are sent", len(f.Body), ir.MaxBody)
		}
		if f.Body != "" && (d.Status == 204 || d.Status == 205 || d.Status == 304) {
			r.problem("spec.directResponse", "has a body, and answers of status %d have none", d.Status)
		}
		out.response = &ir.HeaderChanges{}
		for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
			header := gwv1.HTTPHeader{Name: gwv1.HTTPHeaderName(name), Value: string(d.Headers[name])}
			out.response.Set = append(out.response.Set, r.headerValues(inRouteFilter, "directResponse.headers", []gwv1.HTTPHeader{header})...)
		}
	}
	if u := spec.URLRewrite; u != nil {
		out.rewrite = r.urlRewrite(u)
	}
	out.request = r.templates("requestHeaders", spec.RequestHeaders)
	response := r.templates(responseHeaders, spec.ResponseHeaders)
	out.response = joined(out.response, response)
	if response != nil {
		r.oneAction(inRouteFilter, responseHeaders, out.response)
	}
	for i := range r.problems {
		r.own = append(r.own, r.problems[i].Condition.Message)
	}
	return out, r.own
}

func (r *filterReader) urlRewrite(u *v1alpha1.URLRewrite) *ir.Rewrite {
	out := &ir.Rewrite{}
	if p := u.Path; p != nil {
		const field = "spec.urlRewrite.path"
		out.Path = r.pattern(field, p, "?#")
		if strings.HasPrefix(p.Pattern, "^") && !strings.HasPrefix(p.Substitution, "/") && !slashFirst(p.Pattern, p.Substitution) {
			r.problem(field+".substitution", "is %q, and a path begins with /: write it there, or a group of the pattern that begins with it", p.Substitution)
		}
	}
	if h := u.Hostname; h != nil {
		if h.Header != nil {
			out.HostHeader = strings.ToLower(*h.Header)
			if !ir.IsToken(out.HostHeader) || strings.HasPrefix(out.HostHeader, internalHeaders) {
				r.problem("spec.urlRewrite.hostname.header", "is %q, which can't be such a header", *h.Header)
			}
		}
		if h.Path != nil {
			out.HostPath = r.pattern("spec.urlRewrite.hostname.path", h.Path, "/?#@")
		}
	}
	return out
}

// slashFirst reports whether a substitution begins with a group of the pattern that begins with a slash. What else a client
// has put there could be a whole URL, whose host its backend would believe (RFC 9112, 3.2.2).
func slashFirst(pattern, substitution string) bool {
	if strings.HasPrefix(substitution, `\0`) {
		return strings.HasPrefix(pattern, "^/")
	}
	e, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || len(substitution) < 2 || substitution[0] != '\\' {
		return err != nil // which is told already
	}
	if group := captured(e, int(substitution[1]-'0')); group != nil {
		for e = group.Sub[0]; e.Op == syntax.OpConcat; {
			e = e.Sub[0]
		}
		return e.Op == syntax.OpLiteral && e.Rune[0] == '/'
	}
	return false
}

// captured finds a group of an expression.
func captured(e *syntax.Regexp, group int) *syntax.Regexp {
	if e.Op == syntax.OpCapture && e.Cap == group {
		return e
	}
	for _, sub := range e.Sub {
		if found := captured(sub, group); found != nil {
			return found
		}
	}
	return nil
}

// pattern reads what is replaced, and by what; forbidden are characters that can't stand there.
func (r *filterReader) pattern(field string, in *v1alpha1.RegexRewrite, forbidden string) *ir.PathRewrite {
	out := &ir.PathRewrite{Pattern: in.Pattern, Value: in.Substitution}
	groups := 9
	if r.regex(inRouteFilter, strings.TrimPrefix(field, "spec.")+".pattern", in.Pattern, func() string { return "all requests of rules with this filter" }) {
		if e, err := syntax.Parse(in.Pattern, syntax.Perl); err == nil {
			groups = e.MaxCap()
		}
	}
	s := in.Substitution
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			i++
			switch n := int(s[i] - '0'); {
			case n <= groups:
			case groups == 0:
				r.problem(field+".substitution", `has \%d, and the pattern has no groups`, n)
			default:
				r.problem(field+".substitution", `has \%d, and the last group of the pattern is \%d`, n, groups)
			}
		case c == '\\':
			r.problem(field+".substitution", `has a \ without a digit behind it, which stands for a group`)
		case c <= ' ' || c >= 0x7f || strings.IndexByte(forbidden, c) >= 0:
			r.problem(field+".substitution", "has %s, which can't be there: percent-encode it", strconv.QuoteRune(rune(c)))
		}
	}
	return out
}

// templates reads changes of headers; nil for none.
func (r *filterReader) templates(name string, in *v1alpha1.HeaderTemplates) *ir.HeaderChanges {
	if in == nil {
		return nil
	}
	plain := &gwv1.HTTPHeaderFilter{Set: headersOf(in.Set), Add: headersOf(in.Add), Remove: in.Remove}
	out := r.headerChanges(inRouteFilter, name, plain)
	if out == nil {
		return nil
	}
	r.templated(name, ".set", out.Set)
	r.templated(name, ".add", out.Add)
	return out
}

func headersOf(in []v1alpha1.HeaderTemplate) []gwv1.HTTPHeader {
	out := make([]gwv1.HTTPHeader, len(in))
	for i := range in {
		out[i] = gwv1.HTTPHeader{Name: gwv1.HTTPHeaderName(in[i].Name), Value: in[i].Value}
	}
	return out
}

// templated marks headers with variables in their values.
func (r *filterReader) templated(name, list string, headers []ir.Header) {
	for i := range headers {
		h := &headers[i]
		if !strings.Contains(h.Value, "${") {
			continue
		}
		h.Template = true
		field := "spec." + name + list + "[" + h.Name + "].value"
		pieces, err := ir.ParseTemplate(h.Value)
		if err != nil {
			r.problem(field, "can't be read: %v", err)
		}
		for _, p := range pieces {
			if name == responseHeaders && slices.Contains(credentials, p.Name) {
				r.problem(field, "has ${request.headers.%s}: what a client is known by doesn't come back in answers, where a script could read it", p.Name)
			}
		}
	}
}

const responseHeaders = "responseHeaders"

// credentials are the headers by which clients are known, in lower case.
var credentials = []string{"authorization", "cookie", "proxy-authorization"}

// joined are two changes together; nil for none.
func joined(a, b *ir.HeaderChanges) *ir.HeaderChanges {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &ir.HeaderChanges{
		Set: slices.Concat(a.Set, b.Set), Add: slices.Concat(a.Add, b.Add), Remove: slices.Concat(a.Remove, b.Remove),
	}
}

// extensions adds to what a rule does what its RouteFilters ask for, of those that can be used, and returns the
// direct answer among that.
func (t *translation) extensions(at position, list []gwv1.HTTPRouteFilter, found []*topology.RouteFilter, out *ir.Filters) (direct extension) {
	next := 0
	for i := range list {
		ref := list[i].ExtensionRef
		if list[i].Type != gwv1.HTTPRouteFilterExtensionRef || ref == nil {
			continue
		}
		at := at.inFilter(i)
		field := at.field("extensionRef")
		var f *topology.RouteFilter
		if next < len(found) {
			f = found[next]
		}
		next++
		switch {
		case !topology.IsRouteFilter(ref):
			t.refuse(field, condition.UnknownFilterKind(field, string(ref.Group), string(ref.Kind), string(ref.Name)))
		case f == nil:
			t.refuse(field, condition.FilterNotFound(field, t.key.Namespace+"/"+string(ref.Name)))
		default:
			t.extend(at, f, out, &direct)
		}
	}
	return direct
}

func (t *translation) extend(at position, f *topology.RouteFilter, out *ir.Filters, direct *extension) {
	field, name := at.field("extensionRef"), f.Name.String()
	if f.Refused != nil {
		t.refuse(field, condition.FilterRefused(field, name, f.Refused.Message))
		return
	}
	e, problems := extensionOf(f)
	if len(problems) > 0 {
		t.refuse(field, condition.FilterRefused(field, name, condition.RouteFilterInvalid(problems).Message))
		return
	}
	const answers, rewrites = "directResponse", "urlRewrite"
	only := func(part string) { // of HTTPRoutes
		if t.key.Kind != kind.HTTPRoute {
			t.refuse(field, condition.FilterNotFor(field, name, part, t.key.Kind.Name()))
		}
	}
	if e.status != 0 {
		only(answers)
		if direct.status != 0 {
			t.refuse(field, condition.RepeatedFilter(field, answers))
		}
		*direct = e
	}
	if e.rewrite != nil {
		only(rewrites)
		if out.Rewrite != nil {
			t.refuse(field, condition.FiltersExclude(field, rewrites+" of RouteFilter "+name, "another URLRewrite"))
		}
		out.Rewrite = e.rewrite
	}
	if e.request != nil {
		out.RequestHeaders = joined(out.RequestHeaders, e.request)
		t.oneAction(at, "extensionRef", out.RequestHeaders)
		t.once(at, out.RequestHeaders)
	}
	if e.response != nil {
		out.ResponseHeaders = joined(out.ResponseHeaders, e.response)
		t.oneAction(at, "extensionRef", out.ResponseHeaders)
		t.once(at, out.ResponseHeaders)
	}
}

// once checks that no header is set twice, by several filters.
func (t *translation) once(at position, c *ir.HeaderChanges) {
	for i, h := range c.Set {
		if slices.ContainsFunc(c.Set[:i], named(h.Name)) {
			f := at.field("extensionRef")
			t.refuse(f, condition.HeaderTwice(f, h.Name))
		}
	}
}
