package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// directive is one of nginx: its words, without quotes.
type directive []string

// directives reads directives that have no block; false for what isn't.
func directives(text string) (out []directive, ok bool) {
	var words directive
	var word strings.Builder
	var quote rune
	open, quoted := false, false
	end := func() {
		if open || quoted {
			words = append(words, word.String())
		}
		word.Reset()
		open, quoted = false, false
	}
	for line := range strings.Lines(text) {
	letters:
		for _, r := range line {
			switch {
			case r == '\\' || r == '\n' && quote != 0:
				return nil, false
			case quote != 0 && r == quote:
				quote = 0
			case quote != 0:
				word.WriteRune(r)
			case (r == '"' || r == '\'') && !open && !quoted:
				quote, quoted = r, true
			case r == '#' && !open && !quoted:
				break letters
			case r == '{' || r == '}' || quoted && r != ';' && r != ' ' && r != '\t' && r != '\n' && r != '\r':
				return nil, false
			case r == ';':
				end()
				if len(words) > 0 {
					out = append(out, words)
				}
				words = nil
			case r == ' ' || r == '\t' || r == '\n' || r == '\r':
				end()
			default:
				open = true
				word.WriteRune(r)
			}
		}
		if quote == 0 {
			end()
		}
	}
	return out, quote == 0 && len(words) == 0
}

// needless are directives about what Envoy does anyway, or has no use for.
var needless = []string{
	"proxy_buffering", "proxy_buffer_size", "proxy_buffers", "proxy_busy_buffers_size", "proxy_request_buffering", "proxy_http_version",
	"proxy_max_temp_file_size", "client_body_buffer_size", "chunked_transfer_encoding", "keepalive_requests", "log_not_found",
}

// ownHeaders are those that ingress-nginx sets for backends: a second one of the name would stand beside it.
var ownHeaders = regexp.MustCompile(`(?i)^(host|connection|upgrade|proxy|x-real-ip|x-scheme|x-request-id|x-forwarded-.*|x-original-.*)$`)

var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// locationSnippet converts directives for the paths of an Ingress, if it knows all of them.
func locationSnippet(c *conversion, in *ingress, value string) (Verdict, string) {
	if verdict, text := snippet(c, in, value); verdict == NotNeeded {
		return verdict, text
	}
	list, ok := directives(value)
	if !ok {
		return NotPossible, "it has a block, or something else that isn't read; " + noSnippets
	}
	s := snippetOf{in: in}
	for _, d := range list {
		if wrong := s.read(d); wrong != "" {
			return NotPossible, strings.Join(d, " ") + ": " + wrong
		}
	}
	if wrong := s.settle(c); wrong != "" {
		return NotPossible, wrong
	}
	if s.differs != "" {
		return Differs, s.differs
	}
	return "", ""
}

// serverSnippet converts directives for a host, which are for the paths of an Ingress if no other one has its hosts.
func serverSnippet(c *conversion, in *ingress, value string) (Verdict, string) {
	if verdict, text := snippet(c, in, value); verdict == NotNeeded {
		return verdict, text
	}
	if in.annotation("configuration-snippet") != "" {
		return NotPossible, "beside configuration-snippet it can't be converted: " + noSnippets
	}
	for _, other := range c.ingresses {
		if other != in && !other.isCanary() && in.sharesHost(other) {
			return NotPossible, fmt.Sprintf("Ingress %s has a host of this one too, for which the directives are: %s", other.name(), noSnippets)
		}
	}
	if list, _ := directives(value); slices.ContainsFunc(list, func(d directive) bool { return d[0] == "proxy_set_header" }) {
		return NotPossible, "proxy_set_header has no effect there, since each path has its own: " + noSnippets
	}
	verdict, text := locationSnippet(c, in, value)
	if verdict == "" {
		return Differs, "as configuration-snippet: answers to paths that no Ingress has are as they are"
	}
	return verdict, text
}

// sharesHost reports whether two Ingresses have a host in common.
func (in *ingress) sharesHost(other *ingress) bool {
	return slices.ContainsFunc(in.Spec.Rules, func(a networkingv1.IngressRule) bool {
		return slices.ContainsFunc(other.Spec.Rules, func(b networkingv1.IngressRule) bool { return a.Host == b.Host })
	})
}

// snippetOf is what directives become, before it is known that all of them can be converted.
type snippetOf struct {
	in          *ingress
	headers     v1alpha1.AnswerHeaders
	request     []gwv1.HTTPHeader
	allow, deny []string
	denyAll     bool
	status      int
	redirect    *gwv1.HTTPRequestRedirectFilter
	differs     string
}

// read takes in a directive, and says what is wrong with one that can't be converted.
func (s *snippetOf) read(d directive) (wrong string) {
	name, args := d[0], d[1:]
	switch {
	case slices.Contains(needless, name):
		return ""
	case len(args) == 0:
		return noSnippets
	case (name == "allow" || name == "deny" || name == "return") && (s.status != 0 || s.redirect != nil || s.denyAll):
		return "it has no effect behind return or deny all"
	}
	switch name {
	case "more_set_headers":
		for _, arg := range args {
			if wrong := s.set(&s.headers.Set, arg); wrong != "" {
				return wrong
			}
		}
	case "more_set_input_headers":
		for _, arg := range args {
			if name, _, _ := strings.Cut(arg, ":"); ownHeaders.MatchString(strings.TrimSpace(name)) {
				return noSnippets // it has no effect there
			}
			if wrong := s.set(&s.request, arg); wrong != "" {
				return wrong
			}
		}
	case "more_clear_headers":
		for _, arg := range args {
			if !headerName.MatchString(arg) {
				return noSnippets
			}
			s.headers.Remove = append(s.headers.Remove, arg)
		}
	case "add_header":
		if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "always" {
			return noSnippets
		}
		if len(args) == 2 {
			s.differs = "headers of add_header without always are in answers that are errors too"
		}
		return s.set(&s.headers.Add, args[0]+": "+args[1])
	case "proxy_set_header":
		if len(args) != 2 || ownHeaders.MatchString(args[0]) {
			return noSnippets
		}
		return s.set(&s.request, args[0]+": "+args[1])
	case "allow", "deny":
		return s.address(name, args)
	case "return":
		return s.answer(args)
	default:
		return noSnippets
	}
	return ""
}

// set reads "NAME: VALUE" into a list.
func (s *snippetOf) set(to *[]gwv1.HTTPHeader, text string) (wrong string) {
	name, value, ok := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	same := func(h gwv1.HTTPHeader) bool { return strings.EqualFold(string(h.Name), name) }
	switch {
	case !ok || !headerName.MatchString(name) || value == "":
		return "write NAME: VALUE"
	case strings.Contains(value, "$"):
		return "a variable has no counterpart here; requestHeaders and responseHeaders of a RouteFilter have some"
	case slices.ContainsFunc(*to, same):
		return "the header is set twice"
	case to != &s.request && strings.EqualFold(name, "Strict-Transport-Security"):
		return "say it by response.strictTransportSecurity of a TrafficPolicy"
	case to == &s.headers.Set && slices.ContainsFunc([]string{"Content-Encoding", "WWW-Authenticate", "Set-Cookie", "Vary"}, func(n string) bool { return strings.EqualFold(n, name) }):
		return "this header can only be added"
	}
	*to = append(*to, gwv1.HTTPHeader{Name: gwv1.HTTPHeaderName(name), Value: value})
	return ""
}

// address reads who may pass: some and nobody else, or all but some.
func (s *snippetOf) address(name string, args []string) (wrong string) {
	switch {
	case len(args) != 1:
		return noSnippets
	case name == "deny" && args[0] == "all":
		s.denyAll = true
		return ""
	case args[0] == "all", name == "allow" && s.deny != nil, name == "deny" && s.allow != nil:
		return "lists in which allow and deny take turns can't be converted: write an AuthPolicy"
	}
	list, bad := ranges(args[0])
	if bad != "" || len(list) != 1 {
		return fmt.Sprintf("%q is neither an address nor a network", args[0])
	}
	if name == "allow" {
		s.allow = append(s.allow, list...)
	} else {
		s.deny = append(s.deny, list...)
	}
	return ""
}

// answer reads what all requests are answered.
func (s *snippetOf) answer(args []string) (wrong string) {
	code, err := strconv.Atoi(args[0])
	switch {
	case err != nil || len(args) > 2:
		return noSnippets
	case slices.Contains(redirectCodes, code) && len(args) == 2:
		if !strings.Contains(args[1], "$request_uri") {
			s.differs = "the query of the request goes with the redirect"
		}
		s.redirect, wrong = redirectTo(args[1], code)
		return wrong
	case code >= 400 && code <= 599 && len(args) == 1 && code != 444 && code != 499:
		s.status = code
		return ""
	}
	return noSnippets
}

// guarding are the annotations that nginx looks at after return, and allow and deny among it.
var guarding = []string{
	"auth-type", "auth-url", "auth-tls-secret", "whitelist-source-range", "allowlist-source-range", "denylist-source-range", "satisfy",
	"limit-rps", "limit-rpm", "permanent-redirect", "temporal-redirect", "app-root", "rewrite-target", "custom-headers",
}

// settle puts all of it into the parts of the Ingress.
func (s *snippetOf) settle(c *conversion) (wrong string) {
	in, p := s.in, &s.in.parts
	beside := func(among []string) string {
		for _, name := range among {
			if in.annotation(name) != "" {
				return "beside " + name + " it can't be converted: " + noSnippets
			}
		}
		return ""
	}
	if s.status != 0 || s.redirect != nil {
		if wrong := beside(guarding); wrong != "" {
			return wrong
		}
	}
	if s.allow != nil || s.deny != nil || s.denyAll {
		if c.config.addresses != nil {
			return "beside the addresses of the controller's ConfigMap it can't be converted: " + noSnippets
		}
		if wrong := beside([]string{"whitelist-source-range", "allowlist-source-range", "denylist-source-range", "satisfy", "auth-tls-secret"}); wrong != "" {
			return wrong
		}
	}
	if len(s.headers.Set)+len(s.headers.Add)+len(s.headers.Remove) > 0 {
		if wrong := beside([]string{"custom-headers"}); wrong != "" {
			return wrong
		}
		p.traffic.Response.Headers = &s.headers
	}
	p.requestHeaders = append(p.requestHeaders, s.request...)
	if s.status != 0 {
		p.status = s.status
	}
	if s.redirect != nil {
		p.redirect = s.redirect
	}
	switch {
	case s.allow != nil && s.denyAll:
		p.authorize(allowRule, v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{Allow: s.allow}})
	case s.denyAll: // of all but some all are denied, too
		p.authorize(denyRule, v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{Deny: []string{"0.0.0.0/0", "::/0"}}})
	case s.deny != nil:
		p.authorize(denyRule, v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{Deny: s.deny}})
	}
	return ""
}
