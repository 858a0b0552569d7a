package traffic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const hsts = "strict-transport-security"

// addedOnly are headers of which others stay as they are: the Gateway writes them itself for logins, CORS and
// compression.
var addedOnly = []string{"content-encoding", "set-cookie", "vary", "www-authenticate"}

// isValue reports whether a text can be the value of a header, in HTTP/2 too: no space or tab stands at its
// ends (RFC 9113, section 8.2.1).
func isValue(text string) bool { return ir.IsFieldValue(text) && strings.Trim(text, " \t") == text }

func (r *reader) headers(in *v1alpha1.AnswerHeaders, out *ir.Traffic) {
	h := &ir.AnswerHeaders{}
	out.Headers = h
	n := len(in.Set) + len(in.SetIfAbsent) + len(in.Add) + len(in.Remove)
	switch {
	case in.Disabled && n > 0:
		r.Problem(".disabled", "is true, and changes nothing; leave out either it or what stands beside it")
	case !in.Disabled && n == 0:
		r.Problem("", "changes nothing; write set, setIfAbsent, add or remove, or disabled: true")
	}
	var names []string
	once := func(list, field, name string) string {
		lower := strings.ToLower(name)
		switch {
		case !ir.IsToken(lower):
			r.Problem(field, "is %q, which is no name of a header", name)
		case ir.IsFraming(lower) || strings.HasPrefix(lower, "x-envoy-") || lower == "host":
			r.Problem(field, "is %q, which is the Gateway's own to write", name)
		case lower == hsts:
			r.Problem(field, "is %q; write response.strictTransportSecurity, which is never said over plain HTTP", name)
		case list != "add" && slices.Contains(addedOnly, lower):
			r.Problem(field, "is %q, on which logins, CORS or compression rely; it can only stand in add", name)
		case slices.Contains(names, lower):
			r.Problem(field, "is %q, of which there is another action already; of each header there is one", name)
		}
		names = append(names, lower)
		return lower
	}
	values := func(list string, in []gwv1.HTTPHeader) (out []ir.Header) {
		for i, header := range in {
			field := fmt.Sprintf(".%s[%d]", list, i)
			name := once(list, field+".name", string(header.Name))
			if header.Value == "" || !isValue(header.Value) {
				r.Problem(field+".value", "is %q, which can't be the value of a header", header.Value)
			}
			out = append(out, ir.Header{Name: name, Value: header.Value})
		}
		return out
	}
	h.Set, h.SetIfAbsent, h.Add = values("set", in.Set), values("setIfAbsent", in.SetIfAbsent), values("add", in.Add)
	for i, name := range in.Remove {
		h.Remove = append(h.Remove, once("remove", fmt.Sprintf(".remove[%d]", i), name))
	}
}

// year is how long browsers remember by default, and what lists of preloaded hosts ask for.
const year = 365 * 24 * time.Hour

func (r *reader) strictTransportSecurity(in *v1alpha1.StrictTransportSecurity, out *ir.Traffic) {
	out.StrictTransportSecurity = new(string)
	if in.Disabled {
		if in.MaxAge != nil || in.IncludeSubDomains || in.Preload {
			r.Problem(".disabled", "is true, and says nothing; leave out either it or what stands beside it")
		}
		return
	}
	age := year
	if in.MaxAge != nil {
		age = r.duration(".maxAge", *in.MaxAge, 0, "a time such as 8760h, or 0s to have browsers forget it")
		if age%time.Second != 0 {
			r.Problem(".maxAge", "is %q; write whole seconds: less than one would have browsers forget it", *in.MaxAge)
		}
	}
	value := "max-age=" + strconv.FormatInt(int64(age/time.Second), 10)
	if in.IncludeSubDomains {
		value += "; includeSubDomains"
	}
	if in.Preload {
		value += "; preload"
		if !in.IncludeSubDomains || age < year {
			r.Problem(".preload", "is true, and needs includeSubDomains: true and a maxAge of at least 8760h")
		}
	}
	*out.StrictTransportSecurity = value
}

var frameOptions = map[v1alpha1.FrameOptions]string{
	"": "SAMEORIGIN", v1alpha1.FrameSameOrigin: "SAMEORIGIN", v1alpha1.FrameDeny: "DENY", v1alpha1.FrameAny: "",
}

// defaultReferrerPolicy tells other sites the host alone, and no site the path over plain HTTP.
const defaultReferrerPolicy = "strict-origin-when-cross-origin"

func (r *reader) securityHeaders(in *v1alpha1.SecurityHeaders, out *ir.Traffic) {
	s := &ir.SecurityHeaders{}
	out.SecurityHeaders = s
	if in.Disabled {
		if in.FrameOptions != "" || in.ReferrerPolicy != "" || in.ContentSecurityPolicy != "" || in.PermissionsPolicy != "" {
			r.Problem(".disabled", "is true, and sets no header; leave out either it or what stands beside it")
		}
		return
	}
	frames, ok := frameOptions[in.FrameOptions]
	if !ok {
		r.Problem(".frameOptions", "is %q; write SameOrigin, Deny or Any", in.FrameOptions)
	}
	referrer := string(in.ReferrerPolicy)
	if referrer == "" {
		referrer = defaultReferrerPolicy
	}
	for _, h := range []struct{ field, name, value string }{
		{"", "x-content-type-options", "nosniff"},
		{".frameOptions", "x-frame-options", frames},
		{".referrerPolicy", "referrer-policy", referrer},
		{".contentSecurityPolicy", "content-security-policy", string(in.ContentSecurityPolicy)},
		{".permissionsPolicy", "permissions-policy", string(in.PermissionsPolicy)},
	} {
		if !isValue(h.value) {
			r.Problem(h.field, "is %q, which can't be the value of a header", h.value)
		}
		if h.value != "" {
			s.Set = append(s.Set, ir.Header{Name: h.name, Value: h.value})
		}
	}
}
