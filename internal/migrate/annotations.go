package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// annotation is a row of the table of all that ingress-nginx reads.
type annotation struct {
	name    string
	verdict Verdict
	// text says what it becomes, why nothing need be done, or what to do instead.
	text string
	// of is the annotation without which this one has no effect.
	of string
	// protects says that leaving it out lets something through.
	protects bool
	// apply converts a value. It returns the verdict and what to say where those of the row don't hold.
	apply func(c *conversion, in *ingress, value string) (Verdict, string)
}

const (
	noSnippets  = "nginx's own directives can't be converted: say what they are for by a policy, a RouteFilter or a filter of the route"
	buffers     = "buffers of nginx: Envoy streams, and what one connection may hold is bounded"
	nginxLog    = "a log of nginx alone"
	noTLSChoice = "a setting for a single host is not possible; TLS is that of the whole listener, by GatewayParameters"
	redirected  = "a RequestRedirect in place of the backends"
	byPolicy    = "AuthPolicy"
)

// table has all annotations of ingress-nginx 1.15, by name.
var table = []annotation{
	{name: "affinity", verdict: Converted, text: "TrafficPolicy, backend.loadBalancing: ConsistentHash by a cookie that the proxy gives out", apply: affinity},
	{name: "affinity-canary-behavior", of: "affinity", verdict: NotNeeded, text: "the cookie is for each backend of a rule by itself"},
	{name: "affinity-mode", of: "affinity", verdict: NotNeeded, text: "a new endpoint takes over its share of the clients, as with balanced"},
	{name: "allowlist-source-range", verdict: Converted, text: "AuthPolicy, authorization by addresses", protects: true, apply: allowed},
	{name: "app-root", verdict: Converted, text: "a rule for / alone, with a RequestRedirect", apply: appRoot},
	{name: "auth-always-set-cookie", of: "auth-url", verdict: NotNeeded, text: "cookies of a permission go to the client"},
	{name: "auth-cache-duration", of: "auth-url", verdict: NotNeeded, text: "each request is asked about, so that nothing outlives what the service says"},
	{name: "auth-cache-key", of: "auth-url", verdict: NotNeeded, text: "each request is asked about, so that nothing outlives what the service says"},
	{name: "auth-keepalive", of: "auth-url", verdict: NotNeeded, text: "connections to the service are kept"},
	{name: "auth-keepalive-requests", of: "auth-url", verdict: NotNeeded, text: "connections to the service are kept"},
	{name: "auth-keepalive-share-vars", of: "auth-url", verdict: NotNeeded, text: "there are no variables to share"},
	{name: "auth-keepalive-timeout", of: "auth-url", verdict: NotNeeded, text: "connections to the service are kept"},
	{name: "auth-method", of: "auth-url", verdict: NotPossible, text: "the service is asked by the client's method"},
	{name: "auth-proxy-set-headers", of: "auth-url", verdict: NotPossible, text: "the service gets headers of the request: name them in external.http.allowedHeaders"},
	{name: "auth-realm", of: "auth-type", verdict: Converted, text: "basic.realm"},
	{name: "auth-request-redirect", of: "auth-url", verdict: NotPossible, text: "the service gets no X-Auth-Request-Redirect"},
	{name: "auth-response-headers", of: "auth-url", verdict: Converted, text: "external.http.allowedResponseHeaders"},
	{name: "auth-secret", of: "auth-type", verdict: Converted, text: "basic.secretRef"},
	{name: "auth-secret-type", of: "auth-type", verdict: Converted, text: "basic.secretRef.key"},
	{name: "auth-signin", of: "auth-url", verdict: NotPossible, text: "let the service answer with the redirect to the page itself, or have the proxy log people in (oidc of an AuthPolicy)"},
	{name: "auth-signin-redirect-param", of: "auth-signin", verdict: NotPossible, text: "see auth-signin"},
	{name: "auth-snippet", of: "auth-url", verdict: NotPossible, text: noSnippets, protects: true, apply: snippet},
	{name: "auth-tls-error-page", of: "auth-tls-secret", verdict: Converted, text: "AuthPolicy, responses.unauthenticated.redirect; a certificate that can't be verified counts as none", apply: errorPage},
	{name: "auth-tls-match-cn", of: "auth-tls-secret", verdict: NotPossible, text: "AuthPolicy, clientCertificate.subjectAltNames: names in the subject alone count no longer", protects: true},
	{name: "auth-tls-pass-certificate-to-upstream", of: "auth-tls-secret", verdict: NotPossible, text: "clientCertificate.identityHeader tells backends the client's name", apply: ifOn},
	{name: "auth-tls-secret", verdict: Converted, text: "tls.frontend of the Gateway, for one authority, and AuthPolicy, clientCertificate, for all routes of the host", protects: true, apply: clientCertificate},
	{name: "auth-tls-verify-client", of: "auth-tls-secret", verdict: Converted, text: "whether there is an AuthPolicy"},
	{name: "auth-tls-verify-depth", of: "auth-tls-secret", verdict: NotNeeded, text: "chains are as long as they are"},
	{name: "auth-type", verdict: Converted, text: "AuthPolicy, basic", protects: true, apply: basicAuth},
	{name: "auth-url", verdict: Differs, text: "AuthPolicy, external; the service gets Authorization, Cookie and X-Forwarded headers, and neither X-Original-URL nor other headers", protects: true, apply: external},
	{name: "backend-protocol", verdict: Converted, text: "GRPCRoute for GRPC and GRPCS, BackendTLSPolicy for HTTPS and GRPCS", apply: protocol},
	{name: "canary", verdict: Converted, text: "a further backend of the rules of the other Ingress"},
	{name: "canary-by-cookie", of: "canary", verdict: Converted, text: "rules with a match of the header Cookie"},
	{name: "canary-by-header", of: "canary", verdict: Converted, text: "rules with a match of the header"},
	{name: "canary-by-header-pattern", of: "canary", verdict: Converted, text: "a match of the header by a regular expression"},
	{name: "canary-by-header-value", of: "canary", verdict: Converted, text: "a match of the header"},
	{name: "canary-weight", of: "canary", verdict: Converted, text: "weights of backendRefs"},
	{name: "canary-weight-total", of: "canary", verdict: Converted, text: "weights of backendRefs"},
	{name: "client-body-buffer-size", verdict: NotNeeded, text: buffers},
	{name: "configuration-snippet", verdict: Converted, text: "of these directives alone, if there are no others: more_set_headers, add_header, more_clear_headers, proxy_set_header and more_set_input_headers with texts, allow and deny, return of a status or a redirect", protects: true, apply: locationSnippet},
	{name: "connection-proxy-header", verdict: NotNeeded, text: "connections to backends are kept, and WebSockets upgrade"},
	{name: "cors-allow-credentials", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "cors-allow-headers", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "cors-allow-methods", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "cors-allow-origin", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "cors-expose-headers", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "cors-max-age", of: "enable-cors", verdict: Converted, text: "the filter CORS"},
	{name: "custom-headers", verdict: Converted, text: "TrafficPolicy, response.headers", apply: customHeaders},
	{name: "custom-http-errors", verdict: Converted, text: "TrafficPolicy, response.errorPages, by the Service of default-backend; the status stays, and X-Ingress-Name is X-Route-Name", apply: customErrors},
	{name: "default-backend", verdict: Converted, text: "the backend that custom-http-errors has asked for pages; without that it has no effect", apply: defaultBackend},
	{name: "denylist-source-range", verdict: Converted, text: "AuthPolicy, authorization by addresses", protects: true, apply: denied},
	{name: "disable-proxy-intercept-errors", of: "custom-http-errors", verdict: NotNeeded, text: "answers of the backend pass as they are"},
	{name: "enable-access-log", verdict: NotPossible, text: "access logs are of a whole Gateway, by accessLog of its GatewayParameters"},
	{name: "enable-cors", verdict: Converted, text: "the filter CORS; preflights are answered with 200 where it was 204", apply: cors},
	{name: "enable-global-auth", verdict: NotNeeded, text: "what global-auth-url of the controller's ConfigMap says is told there"},
	{name: "enable-modsecurity", verdict: NotPossible, text: "there is no web application firewall in the proxy: have a service decide (external of an AuthPolicy)", protects: true, apply: ifOn},
	{name: "enable-opentelemetry", verdict: NotPossible, text: "tracing is of a whole Gateway, by tracing of its GatewayParameters", apply: ifOn},
	{name: "enable-owasp-core-rules", of: "enable-modsecurity", verdict: NotPossible, text: "see enable-modsecurity", protects: true, apply: ifOn},
	{name: "enable-rewrite-log", verdict: NotNeeded, text: nginxLog},
	{name: "fastcgi-index", verdict: NotPossible, text: "Envoy speaks no FastCGI: put a server for HTTP before it"},
	{name: "fastcgi-params-configmap", verdict: NotPossible, text: "Envoy speaks no FastCGI: put a server for HTTP before it"},
	{name: "force-ssl-redirect", verdict: Converted, text: "a route of the HTTP listener with a RequestRedirect", apply: onlyRead},
	{name: "from-to-www-redirect", verdict: Converted, text: "a route for the other name with a RequestRedirect", apply: onlyRead},
	{name: "http2-push-preload", verdict: NotNeeded, text: "browsers have dropped HTTP/2 push"},
	{name: "limit-allowlist", verdict: Converted, text: "RateLimitPolicy, addresses.notIn", apply: unlimited},
	{name: "limit-burst-multiplier", verdict: Converted, text: "the window of the rate", apply: onlyRead},
	{name: "limit-connections", verdict: NotPossible, text: "limits are of requests; connections are bounded for a whole listener", protects: true, apply: ifOn},
	{name: "limit-rate", verdict: NotPossible, text: "response.bandwidth of a TrafficPolicy bounds all answers of a rule together, and not each", protects: true, apply: ifOn},
	{name: "limit-rate-after", of: "limit-rate", verdict: NotNeeded, text: "it has no effect without limit-rate, which is told of"},
	{name: "limit-rpm", verdict: Converted, text: "RateLimitPolicy by the client's address; what is over it gets 429 where it was 503", protects: true, apply: rate("rpm", "m")},
	{name: "limit-rps", verdict: Converted, text: "RateLimitPolicy by the client's address; what is over it gets 429 where it was 503", protects: true, apply: rate("rps", "s")},
	{name: "limit-whitelist", verdict: Converted, text: "RateLimitPolicy, addresses.notIn", apply: unlimited},
	{name: "load-balance", verdict: Converted, text: "TrafficPolicy, backend.loadBalancing", apply: loadBalance},
	{name: "mirror-host", of: "mirror-target", verdict: NotPossible, text: "the copy has the request's host"},
	{name: "mirror-request-body", of: "mirror-target", verdict: NotNeeded, text: "bodies are copied; off is not possible", apply: copyBodies},
	{name: "mirror-target", verdict: Converted, text: "the filter RequestMirror", apply: mirror},
	{name: "modsecurity-snippet", verdict: NotPossible, text: "see enable-modsecurity", protects: true},
	{name: "modsecurity-transaction-id", of: "enable-modsecurity", verdict: NotNeeded, text: "it names requests in the log of a firewall that there isn't"},
	{name: "opentelemetry-operation-name", of: "enable-opentelemetry", verdict: NotPossible, text: "see enable-opentelemetry"},
	{name: "opentelemetry-trust-incoming-span", of: "enable-opentelemetry", verdict: NotNeeded, text: "a trace that comes in is gone on with; false is not possible", apply: trustSpans},
	{name: "permanent-redirect", verdict: Converted, text: redirected, protects: true, apply: redirect(301)},
	{name: "permanent-redirect-code", of: "permanent-redirect", verdict: Converted, text: redirected},
	{name: "preserve-trailing-slash", verdict: NotNeeded, text: "redirects to HTTPS keep the path as it is"},
	{name: "proxy-body-size", verdict: Converted, text: "TrafficPolicy, request.maxBodySize", protects: true, apply: bodySize},
	{name: "proxy-buffer-size", verdict: NotNeeded, text: buffers},
	{name: "proxy-buffering", verdict: NotNeeded, text: buffers},
	{name: "proxy-buffers-number", verdict: NotNeeded, text: buffers},
	{name: "proxy-busy-buffers-size", verdict: NotNeeded, text: buffers},
	{name: "proxy-connect-timeout", verdict: Converted, text: "TrafficPolicy, backend.connectTimeout", apply: connectTimeout},
	{name: "proxy-cookie-domain", verdict: NotPossible, text: "cookies pass as the backend sets them: have it set the right domain", apply: ifSet},
	{name: "proxy-cookie-path", verdict: NotPossible, text: "cookies pass as the backend sets them: have it set the right path", apply: ifSet},
	{name: "proxy-http-version", verdict: NotNeeded, text: "backends are spoken to in HTTP/1.1, or as appProtocol of the Service says"},
	{name: "proxy-max-temp-file-size", verdict: NotNeeded, text: buffers},
	{name: "proxy-next-upstream", verdict: Differs, text: "TrafficPolicy, request.retry: what no backend has taken is repeated, and nothing else", apply: retry},
	{name: "proxy-next-upstream-timeout", verdict: NotPossible, text: "retries end with the request, by request.timeout of a TrafficPolicy"},
	{name: "proxy-next-upstream-tries", verdict: Converted, text: "TrafficPolicy, request.retry.attempts", apply: retry},
	{name: "proxy-read-timeout", verdict: Converted, text: "TrafficPolicy, request.idleTimeout; the longer one of it and proxy-send-timeout", apply: silence},
	{name: "proxy-redirect-from", verdict: NotPossible, text: "redirects pass as the backend sends them: have it know its address by X-Forwarded-Host and -Proto", apply: ifSet},
	{name: "proxy-redirect-to", of: "proxy-redirect-from", verdict: NotPossible, text: "see proxy-redirect-from"},
	{name: "proxy-request-buffering", verdict: NotNeeded, text: "requests are streamed to the backend"},
	{name: "proxy-send-timeout", verdict: Converted, text: "TrafficPolicy, request.idleTimeout; the longer one of it and proxy-read-timeout", apply: silence},
	{name: "proxy-ssl-ciphers", verdict: NotPossible, text: "TLS to backends has the proxy's own ciphers"},
	{name: "proxy-ssl-name", of: "backend-protocol", verdict: Converted, text: "validation.hostname of the BackendTLSPolicy"},
	{name: "proxy-ssl-protocols", verdict: NotNeeded, text: "TLS to backends is 1.2 or 1.3"},
	{name: "proxy-ssl-secret", of: "backend-protocol", verdict: Converted, text: "validation.caCertificateRefs of the BackendTLSPolicy; a certificate of the proxy's own is tls.backend of the Gateway"},
	{name: "proxy-ssl-server-name", of: "backend-protocol", verdict: NotNeeded, text: "the name is always sent"},
	{name: "proxy-ssl-verify", of: "backend-protocol", verdict: NotNeeded, text: "certificates of backends are always verified"},
	{name: "proxy-ssl-verify-depth", of: "backend-protocol", verdict: NotNeeded, text: "chains are as long as they are"},
	{name: "relative-redirects", verdict: NotPossible, text: "redirects name the host", apply: ifOn},
	{name: "rewrite-target", verdict: Converted, text: "RouteFilter, urlRewrite.path", apply: onlyRead},
	{name: "satisfy", verdict: Converted, text: "AuthPolicy: with any, basic and anonymous, and addresses for those without credentials", apply: satisfy},
	{name: "server-alias", verdict: Converted, text: "further hostnames of the routes", apply: onlyRead},
	{name: "server-snippet", verdict: Converted, text: "as configuration-snippet, where no other Ingress has the host", protects: true, apply: serverSnippet},
	{name: "service-upstream", verdict: NotNeeded, text: "endpoints that go are left before they are gone"},
	{name: "session-cookie-change-on-failure", of: "affinity", verdict: NotNeeded, text: "a client whose endpoint is gone gets another one"},
	{name: "session-cookie-conditional-samesite-none", of: "affinity", verdict: NotNeeded, text: "browsers that don't know None are gone"},
	{name: "session-cookie-domain", of: "affinity", verdict: Converted, text: "cookie.domain"},
	{name: "session-cookie-expires", of: "affinity", verdict: Converted, text: "cookie.ttl"},
	{name: "session-cookie-max-age", of: "affinity", verdict: Converted, text: "cookie.ttl"},
	{name: "session-cookie-name", of: "affinity", verdict: Converted, text: "cookie.name"},
	{name: "session-cookie-path", of: "affinity", verdict: Converted, text: "cookie.path"},
	{name: "session-cookie-samesite", of: "affinity", verdict: Converted, text: "cookie.sameSite"},
	{name: "session-cookie-secure", of: "affinity", verdict: NotNeeded, text: "the cookie is Secure over HTTPS, and not over HTTP, where no browser would keep it"},
	{name: "ssl-ciphers", verdict: NotPossible, text: noTLSChoice},
	{name: "ssl-passthrough", verdict: Converted, text: "a TLS listener that passes through, and a TLSRoute", apply: onlyRead},
	{name: "ssl-prefer-server-ciphers", verdict: NotNeeded, text: "the proxy's order of ciphers counts, and each of them is strong"},
	{name: "ssl-redirect", verdict: Converted, text: "a route of the HTTP listener with a RequestRedirect", apply: onlyRead},
	{name: "stream-snippet", verdict: NotPossible, text: noSnippets, protects: true, apply: snippet},
	{name: "temporal-redirect", verdict: Converted, text: redirected, protects: true, apply: redirect(302)},
	{name: "temporal-redirect-code", of: "temporal-redirect", verdict: Converted, text: redirected},
	{name: "upstream-hash-by", verdict: Converted, text: "TrafficPolicy, backend.loadBalancing: ConsistentHash", apply: hashBy},
	{name: "upstream-hash-by-subset", of: "upstream-hash-by", verdict: NotPossible, text: "one endpoint has a value", apply: ifOn},
	{name: "upstream-hash-by-subset-size", of: "upstream-hash-by", verdict: NotPossible, text: "one endpoint has a value"},
	{name: "upstream-vhost", verdict: Converted, text: "the filter URLRewrite, hostname", apply: upstreamHost},
	{name: "use-port-in-redirects", verdict: NotNeeded, text: "redirects name the listener's port where it isn't the scheme's"},
	{name: "use-regex", verdict: Converted, text: "matches by RegularExpression", apply: onlyRead},
	{name: "whitelist-source-range", verdict: Converted, text: "AuthPolicy, authorization by addresses", protects: true, apply: whitelisted},
	{name: "x-forwarded-prefix", of: "rewrite-target", verdict: Converted, text: "the filter RequestHeaderModifier"},
}

// dropped are the annotations of older versions of ingress-nginx, and of another controller of the name, that have no
// effect in 1.15.
var dropped = []string{
	"add-base-url", "base-url-scheme", "enable-influxdb", "influxdb-host", "influxdb-measurement", "influxdb-port", "influxdb-server-name",
	"enable-opentracing", "opentracing-operation-name", "opentracing-trust-incoming-span", "grpc-backend", "secure-backends",
	"secure-verify-ca-secret", "session-cookie-hash", "upstream-fail-timeout", "upstream-max-fails", "websocket-services",
}

// rows finds a row of the table.
var rows = func() map[string]*annotation {
	out := map[string]*annotation{}
	for i := range table {
		out[table[i].name] = &table[i]
	}
	return out
}()

// onlyRead is for what is looked at where routes are made.
func onlyRead(*conversion, *ingress, string) (Verdict, string) { return "", "" }

// ifOn is for switches that nothing can be made of where they are on.
func ifOn(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if on, err := strconv.ParseBool(value); value == "" || err == nil && !on {
		return NotNeeded, "it is off"
	}
	return NotPossible, ""
}

func copyBodies(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if value == "off" {
		return NotPossible, "bodies are copied"
	}
	return "", ""
}

// isPage reports whether all clients can be led to a URL.
func isPage(url string) bool {
	return !strings.ContainsAny(url, "$ ") && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "/"))
}

// errorPage is looked at where certificates are asked for.
func errorPage(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if !isPage(value) {
		return NotPossible, "the page is a URL without variables: clients without a certificate get 401"
	}
	return "", ""
}

func trustSpans(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if !isOn(value, true) {
		return NotPossible, "a trace that comes in is gone on with"
	}
	return "", ""
}

// ifSet is for what is off unless it says something.
func ifSet(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if value == "off" || value == "default" || value == "" {
		return NotNeeded, "it is off"
	}
	return NotPossible, ""
}

// snippet is for directives, which ingress-nginx leaves out unless its ConfigMap says otherwise.
func snippet(c *conversion, _ *ingress, _ string) (Verdict, string) {
	said := ""
	if c.input.Config != nil {
		said = c.input.Config.Data["allow-snippet-annotations"]
	}
	if (c.input.Config != nil || c.closed.serving) && !isOn(said, false) {
		return NotNeeded, "allow-snippet-annotations of the controller's ConfigMap is off: it has no effect there"
	}
	return NotPossible, ""
}

// annotations goes through what an Ingress says, and makes its parts.
func (c *conversion) annotations(in *ingress) {
	for _, key := range slices.Sorted(maps.Keys(in.Annotations)) {
		name, ours := strings.CutPrefix(key, prefix)
		if !ours {
			continue
		}
		f := Finding{Annotation: name, Value: in.annotation(name)}
		row := rows[name]
		switch {
		case slices.Contains(dropped, name):
			f.Verdict, f.Message = NotNeeded, "ingress-nginx has dropped it: it has no effect there"
		case row == nil:
			f.Verdict, f.Opens, f.Message = NotPossible, true, "ingress-nginx has no such annotation, or it is newer than this; what it does isn't known"
		case in.isCanary() && !inCanary(row):
			f.Verdict, f.Message = NotNeeded, "of a canary only what is about the canary counts"
		case row.of != "" && in.annotation(row.of) == "":
			f.Verdict, f.Message = NotNeeded, fmt.Sprintf("it has no effect without %s", row.of)
		default:
			f.Verdict, f.Message = row.verdict, row.text
			if row.apply != nil {
				if verdict, text := row.apply(c, in, f.Value); verdict != "" {
					f.Verdict, f.Message = verdict, text
					if text == "" {
						f.Message = row.text
					}
				}
			}
			f.Opens = row.protects && f.Verdict == NotPossible
		}
		c.find(in, f)
	}
}

// inCanary reports whether an annotation counts on a canary.
func inCanary(row *annotation) bool { return row.name == "canary" || row.of == "canary" }
