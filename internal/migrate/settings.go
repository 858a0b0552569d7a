package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// parts are what the annotations of an Ingress become, for all its rules.
type parts struct {
	redirect       *gwv1.HTTPRequestRedirectFilter // in place of backends
	status         int                             // of all answers, in place of backends; 0 for none
	requestHeaders []gwv1.HTTPHeader               // that are set
	filters        []gwv1.HTTPRouteFilter
	appRoot        string
	tls, grpc      bool // to the backend
	authentication map[string]v1alpha1.Authentication
	authorization  map[string]v1alpha1.Authorization
	either         bool    // addresses or credentials suffice
	errorPage      *string // for clients without a certificate; nil for 401
	limits         map[string]v1alpha1.RateLimit
	traffic        v1alpha1.TrafficSettings
}

var nginxSize = regexp.MustCompile(`^([0-9]+)([kKmMgG]?)$`)

// size is a size as nginx writes it; false if it is none.
func size(text string) (intstr.IntOrString, bool) {
	m := nginxSize.FindStringSubmatch(text)
	if m == nil {
		return intstr.IntOrString{}, false
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return intstr.IntOrString{}, false
	}
	switch {
	case n == 0:
		return intstr.FromString("Unlimited"), true
	case m[2] == "":
		return intstr.FromInt32(int32(n)), true
	}
	return intstr.FromString(strconv.FormatInt(n, 10) + map[string]string{"k": "Ki", "m": "Mi", "g": "Gi"}[strings.ToLower(m[2])]), true
}

func bodySize(_ *conversion, in *ingress, value string) (Verdict, string) {
	n, ok := size(value)
	if !ok {
		return NotPossible, fmt.Sprintf("%q is no size", value)
	}
	in.parts.traffic.Request.MaxBodySize = &n
	return "", ""
}

// silence bounds how long nothing may move: there is one time for both directions.
func silence(_ *conversion, in *ingress, _ string) (Verdict, string) {
	longest := 0
	for _, name := range []string{"proxy-read-timeout", "proxy-send-timeout"} {
		if n, err := strconv.Atoi(strings.TrimSuffix(in.annotation(name), "s")); err == nil {
			longest = max(longest, n)
		}
	}
	if longest == 0 {
		return NotNeeded, "it is no number of seconds, and counts for nothing"
	}
	in.parts.traffic.Request.IdleTimeout = new(inSeconds(longest))
	return "", ""
}

func connectTimeout(_ *conversion, in *ingress, value string) (Verdict, string) {
	n, err := strconv.Atoi(strings.TrimSuffix(value, "s"))
	if err != nil || n <= 0 {
		return NotNeeded, "it is no number of seconds, and counts for nothing"
	}
	in.parts.traffic.Backend.ConnectTimeout = new(inSeconds(n))
	return "", ""
}

// maxAttempts is how often a TrafficPolicy repeats at most.
const maxAttempts = 10

// retry says how often the next endpoint is tried.
func retry(_ *conversion, in *ingress, _ string) (Verdict, string) {
	attempts := 2 // of three tries
	if n, err := strconv.Atoi(in.annotation("proxy-next-upstream-tries")); err == nil && n > 0 {
		attempts = min(n-1, maxAttempts)
	}
	if slices.Contains(strings.Fields(in.annotation("proxy-next-upstream")), "off") {
		attempts = 0
	}
	in.parts.traffic.Request.Retry = &v1alpha1.TrafficRetry{Attempts: new(int32(attempts))} //nolint:gosec // at most 10
	return "", ""
}

// customHeaders sets the headers of answers that a ConfigMap lists.
func customHeaders(c *conversion, in *ingress, value string) (Verdict, string) {
	if namespace, _, _ := strings.Cut(value, "/"); c.closed.serving && namespace != in.Namespace {
		return NotPossible, anotherNamespace
	}
	listed := func(string) bool { return true }
	if c.input.Config != nil && c.input.Config.Data["global-allowed-response-headers"] != "" {
		list := words(c.input.Config.Data["global-allowed-response-headers"])
		listed = func(name string) bool {
			return slices.ContainsFunc(list, func(l string) bool { return strings.EqualFold(l, name) })
		}
	}
	for _, m := range c.input.ConfigMaps {
		if m.Namespace+"/"+m.Name != value {
			continue
		}
		headers := &v1alpha1.AnswerHeaders{}
		for _, name := range slices.Sorted(maps.Keys(m.Data)) {
			if !listed(name) {
				c.find(in, Finding{Annotation: "custom-headers", Value: name, Verdict: NotNeeded, Message: "global-allowed-response-headers doesn't list the header, and it is not set"})
				continue
			}
			headers.Set = append(headers.Set, gwv1.HTTPHeader{Name: gwv1.HTTPHeaderName(name), Value: m.Data[name]})
		}
		if len(headers.Set) > 0 {
			in.parts.traffic.Response.Headers = headers
		}
		return "", ""
	}
	return NotPossible, fmt.Sprintf("there is no ConfigMap %s in what was read: have it among it", value)
}

func loadBalance(_ *conversion, in *ingress, value string) (Verdict, string) {
	switch value {
	case "round_robin":
		if in.parts.traffic.Backend.LoadBalancing == nil {
			in.parts.traffic.Backend.LoadBalancing = &v1alpha1.LoadBalancing{Type: v1alpha1.RoundRobinLoadBalancing}
		}
		return "", ""
	case "ewma":
		return Differs, "the endpoint with fewer requests under way is taken, which is the default"
	}
	return NotNeeded, "ingress-nginx has no such algorithm, and takes its default"
}

func consistent(in *ingress, of v1alpha1.ConsistentHash) {
	in.parts.traffic.Backend.LoadBalancing = &v1alpha1.LoadBalancing{Type: v1alpha1.ConsistentHashLoadBalancing, ConsistentHash: &of}
}

func hashBy(_ *conversion, in *ingress, value string) (Verdict, string) {
	variable := strings.Trim(value, "${}\"")
	switch {
	case variable == "remote_addr" || variable == "binary_remote_addr" || variable == "the_real_ip":
		consistent(in, v1alpha1.ConsistentHash{Type: v1alpha1.SourceIPHash})
	case strings.HasPrefix(variable, "http_"):
		name := strings.ReplaceAll(strings.TrimPrefix(variable, "http_"), "_", "-")
		consistent(in, v1alpha1.ConsistentHash{Type: v1alpha1.HeaderHash, Header: &v1alpha1.HashHeader{Name: gwv1.HTTPHeaderName(name)}})
	case strings.HasPrefix(variable, "cookie_"):
		consistent(in, v1alpha1.ConsistentHash{Type: v1alpha1.CookieHash, Cookie: &v1alpha1.HashCookie{Name: strings.TrimPrefix(variable, "cookie_")}})
	case strings.HasPrefix(variable, "arg_"):
		consistent(in, v1alpha1.ConsistentHash{Type: v1alpha1.QueryParamHash, QueryParam: &v1alpha1.HashQueryParam{Name: strings.TrimPrefix(variable, "arg_")}})
	default:
		return NotPossible, fmt.Sprintf("%s can't be hashed: a header, a cookie, a parameter of the query or the client's address can", value)
	}
	return "", ""
}

func affinity(_ *conversion, in *ingress, value string) (Verdict, string) {
	if value != "cookie" {
		return NotNeeded, "ingress-nginx has affinity by cookie alone"
	}
	cookie := &v1alpha1.HashCookie{Name: cmp.Or(in.annotation("session-cookie-name"), "INGRESSCOOKIE")}
	if seconds, err := strconv.Atoi(cmp.Or(in.annotation("session-cookie-max-age"), in.annotation("session-cookie-expires"))); err == nil && seconds > 0 {
		cookie.TTL = new(inSeconds(seconds))
	}
	wrong := cookieAttributes(in, cookie)
	consistent(in, v1alpha1.ConsistentHash{Type: v1alpha1.CookieHash, Cookie: cookie})
	if wrong != "" {
		return NotPossible, wrong
	}
	return "", ""
}

// cookieAttributes sets those that annotations name, and says what is wrong with one.
func cookieAttributes(in *ingress, cookie *v1alpha1.HashCookie) (wrong string) {
	if path := in.annotation("session-cookie-path"); strings.HasPrefix(path, "/") && !strings.ContainsAny(path, ";, ") {
		cookie.Path = &path
	} else if path != "" {
		wrong = "session-cookie-path is no path; the cookie is sent to the whole host"
	}
	if domain := strings.ToLower(strings.TrimPrefix(in.annotation("session-cookie-domain"), ".")); isHost(domain) {
		cookie.Domain = new(gwv1.PreciseHostname(domain))
	} else if domain != "" {
		wrong = "session-cookie-domain is no name of a domain; the cookie is of the host"
	}
	for _, site := range []v1alpha1.SameSite{v1alpha1.SameSiteLax, v1alpha1.SameSiteStrict, v1alpha1.SameSiteNone} {
		if strings.EqualFold(in.annotation("session-cookie-samesite"), string(site)) {
			cookie.SameSite = &site
		}
	}
	return wrong
}

// isHost reports whether a text is a name of a host, and no address.
func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err != nil && len(validation.IsDNS1123Subdomain(strings.ToLower(text))) == 0
}

func upstreamHost(_ *conversion, in *ingress, value string) (Verdict, string) {
	if !isHost(value) {
		return NotPossible, "it is no name of a host; a variable has no counterpart; RouteFilter, urlRewrite.hostname takes a host of a header or of the path"
	}
	in.parts.filters = append(in.parts.filters, gwv1.HTTPRouteFilter{
		Type: gwv1.HTTPRouteFilterURLRewrite, URLRewrite: &gwv1.HTTPURLRewriteFilter{Hostname: new(gwv1.PreciseHostname(strings.ToLower(value)))},
	})
	return "", ""
}

func appRoot(_ *conversion, in *ingress, value string) (Verdict, string) {
	if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, "?$") {
		return NotPossible, "a redirect leads to a path, without a query"
	}
	in.parts.appRoot = value
	return "", ""
}

// redirectCodes are those that an HTTPRoute may have.
var redirectCodes = []int{301, 302, 303, 307, 308}

// redirect has all paths lead elsewhere.
func redirect(code int) func(*conversion, *ingress, string) (Verdict, string) {
	return func(_ *conversion, in *ingress, value string) (Verdict, string) {
		kind, status := map[int]string{301: "permanent-redirect-code", 302: "temporal-redirect-code"}[code], code
		if n, err := strconv.Atoi(in.annotation(kind)); err == nil && n >= 300 && n <= 308 {
			status = n
		}
		if !slices.Contains(redirectCodes, status) {
			return NotPossible, fmt.Sprintf("a redirect has one of the codes %v", redirectCodes)
		}
		r, wrong := redirectTo(value, status)
		if wrong != "" {
			return NotPossible, wrong
		}
		in.parts.redirect = r
		return Differs, "a RequestRedirect in place of the backends; the query goes with it"
	}
}

// redirectTo leads to a URL of nginx, or says what is wrong with it.
func redirectTo(value string, status int) (r *gwv1.HTTPRequestRedirectFilter, wrong string) {
	target, keepsPath := strings.CutSuffix(value, "$request_uri")
	u, err := url.Parse(target)
	if err != nil || strings.Contains(target, "$") || u.RawQuery != "" || u.Fragment != "" || keepsPath && strings.Trim(u.Path, "/") != "" {
		return nil, "a redirect leads to a URL without query and variables; $request_uri at its end keeps the path"
	}
	r = &gwv1.HTTPRequestRedirectFilter{StatusCode: &status}
	if u.Host != "" {
		if u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Hostname()) {
			return nil, "a redirect leads to http or https and a name"
		}
		r.Scheme, r.Hostname = &u.Scheme, new(gwv1.PreciseHostname(strings.ToLower(u.Hostname())))
		if port, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
			r.Port = new(gwv1.PortNumber(port))
		}
	}
	if !keepsPath {
		r.Path = &gwv1.HTTPPathModifier{Type: gwv1.FullPathHTTPPathModifier, ReplaceFullPath: new(cmp.Or(u.Path, "/"))}
	}
	return r, ""
}

func mirror(_ *conversion, in *ingress, value string) (Verdict, string) {
	u, err := url.Parse(strings.TrimSuffix(value, "$request_uri"))
	if err != nil || u.Host == "" {
		return NotPossible, fmt.Sprintf("%q is no URL", value)
	}
	labels := strings.Split(u.Hostname(), ".")
	if len(labels) > 2 && labels[2] != "svc" || len(labels) == 2 && labels[1] != in.Namespace {
		return NotPossible, "copies go to Services of the cluster: make one of type ExternalName"
	}
	if len(labels) > 1 && labels[1] != in.Namespace {
		return NotPossible, "the Service is in another namespace: name it in a RequestMirror, and allow it by a ReferenceGrant"
	}
	port := portOf(u)
	in.parts.filters = append(in.parts.filters, gwv1.HTTPRouteFilter{
		Type: gwv1.HTTPRouteFilterRequestMirror, RequestMirror: &gwv1.HTTPRequestMirrorFilter{
			BackendRef: gwv1.BackendObjectReference{Name: gwv1.ObjectName(labels[0]), Port: &port},
		},
	})
	return "", ""
}

// portOf is the port of a URL in clear.
func portOf(u *url.URL) gwv1.PortNumber {
	if n, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
		return gwv1.PortNumber(n)
	}
	return 80
}

func protocol(_ *conversion, in *ingress, value string) (Verdict, string) {
	switch strings.ToUpper(value) {
	case "HTTP", "":
		return NotNeeded, "it is the default"
	case "GRPC":
		in.parts.grpc = true
		return "", ""
	case "HTTPS":
		in.parts.tls = true
	case "GRPCS":
		in.parts.tls, in.parts.grpc = true, true
	case "AUTO_HTTP":
		return Differs, "backends are spoken to in clear, whatever the client uses"
	default:
		return NotPossible, "Envoy doesn't speak it"
	}
	return Differs, "BackendTLSPolicy: certificates of backends are verified, which nginx does on demand alone; see that its authority and its hostname are right, or the Service isn't reached"
}

// The defaults of ingress-nginx for CORS.
const (
	corsMethods = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
	corsHeaders = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
	corsMaxAge  = "1728000"
)

var corsOrigin = regexp.MustCompile(`^https?://(\*\.)?[A-Za-z0-9.-]+(:[0-9]+)?$`)

// listOr is a list, or its default: ingress-nginx reads no wildcard there.
func listOr(list, otherwise string) string {
	if list == "" || list == "*" {
		return otherwise
	}
	return list
}

func cors(c *conversion, in *ingress, value string) (Verdict, string) {
	if !isOn(value, false) {
		return NotNeeded, "it is off"
	}
	f := &gwv1.HTTPCORSFilter{}
	origins := words(cmp.Or(in.annotation("cors-allow-origin"), "*"))
	if slices.Contains(origins, "*") {
		origins = []string{"*"}
	}
	for _, origin := range origins {
		if origin != "*" && !corsOrigin.MatchString(origin) {
			c.find(in, Finding{Annotation: "cors-allow-origin", Value: origin, Verdict: NotPossible, Message: "an origin is http:// or https:// and a host"})
			continue
		}
		f.AllowOrigins = append(f.AllowOrigins, gwv1.CORSOrigin(origin))
	}
	for _, method := range words(strings.ToUpper(listOr(in.annotation("cors-allow-methods"), corsMethods))) {
		if !slices.Contains(words(corsMethods+", HEAD, CONNECT, TRACE"), method) {
			c.find(in, Finding{Annotation: "cors-allow-methods", Value: method, Verdict: NotPossible, Message: "an HTTPRoute knows no such method"})
			continue
		}
		f.AllowMethods = append(f.AllowMethods, gwv1.HTTPMethodWithWildcard(method))
	}
	for _, name := range words(listOr(in.annotation("cors-allow-headers"), corsHeaders)) {
		f.AllowHeaders = append(f.AllowHeaders, gwv1.HTTPHeaderName(name))
	}
	if len(f.AllowOrigins) == 0 {
		return NotPossible, "no origin is left"
	}
	for _, name := range words(in.annotation("cors-expose-headers")) {
		f.ExposeHeaders = append(f.ExposeHeaders, gwv1.HTTPHeaderName(name))
	}
	if age, err := strconv.ParseInt(cmp.Or(in.annotation("cors-max-age"), corsMaxAge), 10, 32); err == nil && age > 0 {
		f.MaxAge = int32(age)
	}
	anyOrigin := len(f.AllowOrigins) == 1 && f.AllowOrigins[0] == "*"
	if in.isTrue("cors-allow-credentials", true) && !anyOrigin {
		f.AllowCredentials = new(true)
	}
	in.parts.filters = append(in.parts.filters, gwv1.HTTPRouteFilter{Type: gwv1.HTTPRouteFilterCORS, CORS: f})
	if anyOrigin && in.isTrue("cors-allow-credentials", true) {
		return Differs, "the filter CORS, without credentials: of all origins browsers take none with them; the answer names the origin where it was *; preflights are answered with 200 where it was 204"
	}
	return "", ""
}

// words are the items of a list with commas.
func words(list string) (out []string) {
	for w := range strings.SplitSeq(list, ",") {
		if w = strings.TrimSpace(w); w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
