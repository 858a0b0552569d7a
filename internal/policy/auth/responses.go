package auth

import (
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// The names of the answers, behind their prefix.
const (
	unauthenticated = "unauthenticated"
	forbidden       = "forbidden"
)

const maxAnswer = 4096 // bytes of its body

// answers reports whether the rule says nothing but what those are told who don't pass.
func (r *Rule) answers() bool { return r.Unauthenticated != nil || r.Forbidden != nil }

// answerSpec returns an answer as a policy has it; nil for none.
func answerSpec(in *v1alpha1.AuthResponses, name string) any {
	switch {
	case in == nil:
	case name == unauthenticated && in.Unauthenticated != nil:
		return in.Unauthenticated
	case name == forbidden && in.Forbidden != nil:
		return in.Forbidden
	}
	return nil
}

// responses reads the answers. One that is broken is the default: nobody passes by it.
func (r *reader) responses(in *v1alpha1.AuthResponses) (out []policy.Rule[Rule]) {
	if in.Unauthenticated != nil {
		out = append(out, policy.Rule[Rule]{Name: responses + unauthenticated, Value: Rule{
			Unauthenticated: r.answer("."+unauthenticated, in.Unauthenticated, ir.AccessAnswer{Status: 401, Body: "This needs valid credentials.\n"}),
		}})
	}
	if in.Forbidden != nil {
		out = append(out, policy.Rule[Rule]{Name: responses + forbidden, Value: Rule{
			Forbidden: r.answer("."+forbidden, in.Forbidden, ir.AccessAnswer{Status: 403, Body: "This is not permitted.\n"}),
		}})
	}
	return out
}

// answer reads an answer; in place of one that is broken comes the default.
func (r *reader) answer(field string, in *v1alpha1.AuthResponse, otherwise ir.AccessAnswer) *ir.AccessAnswer {
	found := len(r.Problems)
	out := otherwise
	if in.Redirect != nil {
		out.Status, out.Body = 302, ""
		if !isText(*in.Redirect) || !strings.HasPrefix(*in.Redirect, "/") && !strings.HasPrefix(*in.Redirect, "http://") && !strings.HasPrefix(*in.Redirect, "https://") {
			r.Problem(field+".redirect", "is %q; it must be a URL of HTTP, or a path", *in.Redirect)
		}
		out.Headers = append(out.Headers, ir.Header{Name: "location", Value: *in.Redirect})
	}
	if in.Status != nil {
		out.Status = int(*in.Status)
	}
	switch redirects := slices.Contains([]int{301, 302, 303, 307, 308}, out.Status); {
	case in.Redirect != nil && !redirects:
		r.Problem(field+".status", "is %d, with which there is no redirect; it must be 301, 302, 303, 307 or 308", out.Status)
	case in.Redirect == nil && (out.Status < 400 || out.Status > 499):
		r.Problem(field+".status", "is %d; it must be from 400 to 499, or there must be a redirect", out.Status)
	}
	if in.Body != nil {
		if out.Body = *in.Body; len(out.Body) > maxAnswer {
			r.Problem(field+".body", "has %d bytes; at most %d are sent", len(out.Body), maxAnswer)
		}
	}
	seen := map[string]bool{"location": in.Redirect != nil}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		lower, value := strings.ToLower(name), string(in.Headers[name])
		switch {
		case reservedHeader(lower) || lower == "date" || lower == "server" || strings.HasPrefix(lower, "grpc-"):
			r.Problem(field+".headers["+name+"]", "can't be set, since others set it")
		case seen[lower]:
			r.Problem(field+".headers["+name+"]", "is there twice")
		case !isText(value):
			r.Problem(field+".headers["+name+"]", "has other characters than those of ASCII that can be printed")
		}
		seen[lower] = true
		out.Headers = append(out.Headers, ir.Header{Name: lower, Value: value})
	}
	if len(r.Problems) > found {
		return &otherwise
	}
	slices.SortFunc(out.Headers, func(a, b ir.Header) int { return strings.Compare(a.Name, b.Name) })
	return &out
}

// isText reports whether all of a text can be printed in ASCII.
func isText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
