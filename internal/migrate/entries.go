package migrate

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// entry is a row of the table of what the controller's ConfigMap has.
type entry struct {
	names   string // with blanks between
	verdict Verdict
	text    string
	// protects says that leaving it out lets something through.
	protects bool
	// apply converts a value. It returns the verdict and what to say where those of the row don't hold.
	apply func(c *conversion, value string) (Verdict, string)
}

const (
	clientAddress = "write client of the GatewayParameters, by which policies know a client's address behind a load balancer"
	byParameters  = "write tls of the GatewayParameters"
	nginxItself   = "it is about nginx itself"
	ownTracing    = "write tracing of the GatewayParameters"
	ownLogs       = "write accessLog of the GatewayParameters"
	ofTheGateway  = "a TrafficPolicy of the Gateway"
	askedNowhere  = "write an AuthPolicy with external for the Gateway"
	streamsOnly   = "TCP and UDP services are no Ingresses: write a TCPRoute or a UDPRoute"
	noFirewall    = "have a service decide, by external of an AuthPolicy"
)

// entries has all entries of the ConfigMap of ingress-nginx 1.15, by what they are about. Those of the first rows are
// converted in readConfig.
var entries = []entry{
	{names: "ssl-redirect force-ssl-redirect http-redirect-code", verdict: Converted, text: "routes of the HTTP listener with a RequestRedirect"},
	{names: "proxy-body-size", verdict: Converted, text: ofTheGateway + ", request.maxBodySize", protects: true},
	{names: "hsts hsts-max-age hsts-include-subdomains hsts-preload", verdict: Converted, text: ofTheGateway + ", response.strictTransportSecurity"},
	{names: "allow-snippet-annotations", verdict: Converted, text: "whether snippets of Ingresses count"},

	{names: "proxy-connect-timeout", verdict: Converted, text: ofTheGateway + ", backend.connectTimeout", apply: commonConnect},
	{names: "proxy-read-timeout proxy-send-timeout", verdict: Converted, text: ofTheGateway + ", request.idleTimeout; the longer one", apply: commonSilence},
	{names: "proxy-next-upstream-tries", verdict: Converted, text: ofTheGateway + ", request.retry.attempts", apply: commonRetry},
	{names: "load-balance", verdict: Converted, text: ofTheGateway + ", backend.loadBalancing", apply: commonBalance},
	{names: "hide-headers", verdict: Converted, text: ofTheGateway + ", response.headers.remove", protects: true, apply: commonHidden},
	{names: "use-gzip", verdict: Converted, text: ofTheGateway + ", response.compression", apply: commonCompression(v1alpha1.Gzip)},
	{names: "enable-brotli", verdict: Converted, text: ofTheGateway + ", response.compression", apply: commonCompression(v1alpha1.Brotli)},
	{names: "gzip-level gzip-min-length gzip-types gzip-disable brotli-level brotli-min-length brotli-types", verdict: Differs, text: "response.compression has levels, sizes and types of its own: write them into the policy of the Gateway"},
	{names: "allowlist-source-range whitelist-source-range", verdict: Converted, text: "an AuthPolicy of the Gateway, addresses; redirects to HTTPS are refused too", protects: true, apply: commonAllowed},
	{names: "denylist-source-range", verdict: Converted, text: "an AuthPolicy of the Gateway, addresses; redirects to HTTPS are refused too", protects: true, apply: commonDenied},
	{names: "block-cidrs", verdict: Converted, text: "an AuthPolicy of the Gateway, addresses", protects: true, apply: commonBlocked},

	{names: "block-user-agents block-referers", verdict: NotPossible, text: "write an AuthPolicy with when for the Gateway", protects: true},
	{names: "global-auth-url", verdict: NotPossible, text: askedNowhere, protects: true},
	{names: "global-auth-method global-auth-signin global-auth-signin-redirect-param global-auth-response-headers global-auth-request-redirect global-auth-cache-key global-auth-cache-duration global-auth-always-set-cookie no-auth-locations", verdict: NotNeeded, text: "it has no effect without global-auth-url, which is told of"},
	{names: "global-auth-snippet http-snippet server-snippet location-snippet main-snippet stream-snippet", verdict: NotPossible, text: noSnippets, protects: true},
	{names: "enable-modsecurity enable-owasp-modsecurity-crs modsecurity-snippet", verdict: NotPossible, text: noFirewall, protects: true},
	{names: "use-proxy-protocol use-forwarded-headers enable-real-ip proxy-real-ip-cidr forwarded-for-header compute-full-forwarded-for", verdict: NotPossible, text: clientAddress, protects: true},
	{names: "proxy-set-headers", verdict: NotPossible, text: "write a filter RequestHeaderModifier, or requestHeaders of a RouteFilter", protects: true},
	{names: "add-headers", verdict: NotPossible, text: "write response.headers.set of a TrafficPolicy of the Gateway", protects: true},
	{names: "ssl-protocols ssl-ciphers", verdict: NotPossible, text: byParameters, protects: true},
	{names: "limit-rate", verdict: NotPossible, text: "response.bandwidth of a TrafficPolicy bounds all answers of a rule together, and not each", protects: true, apply: unlessZero},
	{names: "limit-rate-after", verdict: NotNeeded, text: "it has no effect without limit-rate, which is told of"},
	{names: "ssl-reject-handshake", verdict: NotNeeded, text: "hosts without a certificate have no HTTPS"},
	{names: "global-allowed-response-headers", verdict: Converted, text: "which of its headers custom-headers sets"},
	{names: "annotation-value-word-blocklist annotations-risk-level strict-validate-path-type allow-cross-namespace-resources", verdict: NotNeeded, text: "it is about what nginx might be made to do: no annotation becomes anything but the fields of objects, which are checked, and Secrets of other namespaces are not read"},
	{names: "client-header-timeout client-body-timeout keep-alive keep-alive-requests http2-max-requests http2-max-concurrent-streams http2-max-field-size http2-max-header-size large-client-header-buffers client-header-buffer-size proxy-protocol-header-timeout", verdict: Differs, text: "what one client may hold is bounded by default, see edge.md of the guide, and by client of the GatewayParameters"},
	{names: "enable-underscores-in-headers ignore-invalid-headers", verdict: Differs, text: "headers with underscores are refused unless client of the GatewayParameters takes them"},

	{names: "custom-http-errors disable-proxy-intercept-errors", verdict: NotPossible, text: "write response.errorPages into the TrafficPolicy of the Gateway, with the Service of --default-backend-service as backendRef"},
	{names: "proxy-cookie-path proxy-cookie-domain", verdict: NotPossible, text: "cookies pass as the backend sets them", apply: unlessOff},
	{names: "proxy-redirect-from", verdict: NotPossible, text: "redirects pass as the backend sends them", apply: unlessOff},
	{names: "relative-redirects", verdict: NotPossible, text: "redirects name the host", apply: unlessOff},
	{names: "proxy-next-upstream retry-non-idempotent", verdict: Differs, text: "what no backend has taken is repeated, and nothing else"},
	{names: "proxy-next-upstream-timeout", verdict: NotPossible, text: "retries end with the request", apply: unlessZero},
	{names: "limit-req-status-code limit-conn-status-code", verdict: Differs, text: "what is over a limit gets 429"},
	{names: "no-tls-redirect-locations", verdict: Differs, text: "all paths are redirected but those of a solver's own route"},
	{names: "proxy-add-original-uri-header", verdict: NotPossible, text: "requestHeaders of a RouteFilter sets X-Original-URI from ${request.path}", apply: unlessOff},
	{names: "generate-request-id", verdict: NotNeeded, text: "each request has an X-Request-Id"},
	{names: "ssl-ecdh-curve ssl-session-cache ssl-session-cache-size ssl-session-tickets ssl-session-ticket-key ssl-session-timeout ssl-buffer-size ssl-dh-param ssl-early-data enable-ocsp", verdict: NotNeeded, text: "TLS is 1.2 and 1.3 with the proxy's own curves, sessions and buffers"},
	{names: "use-http2", verdict: NotNeeded, text: "HTTP/2 is spoken over HTTPS"},
	{names: "use-geoip use-geoip2 geoip2-autoreload-in-minutes", verdict: NotPossible, text: "the proxy knows no countries: have a service decide, by external of an AuthPolicy", apply: unlessOff},

	{names: "access-log-params access-log-path http-access-log-path stream-access-log-path enable-access-log-for-default-backend disable-access-log skip-access-log-urls log-format-escape-none log-format-escape-json log-format-upstream log-format-stream enable-syslog syslog-host syslog-port", verdict: NotPossible, text: ownLogs},
	{names: "enable-opentelemetry opentelemetry-trust-incoming-span opentelemetry-operation-name opentelemetry-config otlp-collector-host otlp-collector-port otel-max-queuesize otel-schedule-delay-millis otel-max-export-batch-size otel-service-name otel-sampler otel-sampler-parent-based otel-sampler-ratio", verdict: NotPossible, text: ownTracing},
	{names: "enable-opentracing opentracing-operation-name opentracing-location-operation-name opentracing-trust-incoming-span zipkin-collector-host zipkin-collector-port zipkin-service-name zipkin-sample-rate jaeger-collector-host jaeger-collector-port jaeger-endpoint jaeger-service-name jaeger-propagation-format jaeger-sampler-type jaeger-sampler-param jaeger-sampler-host jaeger-sampler-port jaeger-trace-context-header-name jaeger-debug-header jaeger-baggage-header jaeger-trace-baggage-header-prefix datadog-collector-host datadog-collector-port datadog-service-name datadog-environment datadog-operation-name-override datadog-priority-sampling datadog-sample-rate", verdict: NotNeeded, text: "ingress-nginx has dropped it: it has no effect there"},
	{names: "global-rate-limit-memcached-host global-rate-limit-memcached-port global-rate-limit-memcached-connect-timeout global-rate-limit-memcached-max-idle-timeout global-rate-limit-memcached-pool-size global-rate-limit-status-code", verdict: NotNeeded, text: "ingress-nginx has dropped it: it has no effect there"},
	{names: "error-log-path error-log-level enable-multi-accept max-worker-connections max-worker-open-files map-hash-bucket-size nginx-status-ipv4-whitelist nginx-status-ipv6-whitelist server-name-hash-max-size server-name-hash-bucket-size proxy-headers-hash-max-size proxy-headers-hash-bucket-size plugins reuse-port server-tokens allow-backend-server-header worker-processes worker-cpu-affinity worker-shutdown-timeout worker-serial-reloads variables-hash-bucket-size variables-hash-max-size lua-shared-dicts limit-conn-zone-variable default-type debug-connections proxy-ssl-location-only enable-aio-write grpc-buffer-size-kb", verdict: NotNeeded, text: nginxItself},
	{names: "client-body-buffer-size proxy-buffers-number proxy-buffer-size proxy-busy-buffers-size proxy-request-buffering proxy-buffering", verdict: NotNeeded, text: buffers},
	{names: "upstream-keepalive-connections upstream-keepalive-time upstream-keepalive-timeout upstream-keepalive-requests", verdict: NotNeeded, text: "connections to backends are kept; backend.connections of a TrafficPolicy says how long"},
	{names: "proxy-stream-timeout proxy-stream-next-upstream proxy-stream-next-upstream-timeout proxy-stream-next-upstream-tries proxy-stream-responses", verdict: NotNeeded, text: streamsOnly},
	{names: "bind-address disable-ipv6 disable-ipv6-dns", verdict: NotNeeded, text: "the Gateway has addresses of its own"},
	{names: "service-upstream", verdict: NotNeeded, text: "endpoints that go are left before they are gone"},
}

// entryOf finds the row of an entry.
var entryOf = func() map[string]*entry {
	out := map[string]*entry{}
	for i := range entries {
		for name := range strings.FieldsSeq(entries[i].names) {
			out[name] = &entries[i]
		}
	}
	return out
}()

// unlessOff is for what counts for nothing unless it says something.
func unlessOff(_ *conversion, value string) (Verdict, string) {
	if value == "off" || value == "false" || value == "" {
		return NotNeeded, "it is off"
	}
	return "", ""
}

func unlessZero(_ *conversion, value string) (Verdict, string) {
	if value == "0" || value == "" {
		return NotNeeded, "it is off"
	}
	return "", ""
}

// seconds reads a number of them; 0 for what is none.
func seconds(value string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(value, "s"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

const noSeconds = "it is no number of seconds, and counts for nothing"

func commonConnect(c *conversion, value string) (Verdict, string) {
	n := seconds(value)
	if n == 0 {
		return NotNeeded, noSeconds
	}
	c.config.traffic.Backend.ConnectTimeout = new(inSeconds(n))
	return "", ""
}

func commonSilence(c *conversion, _ string) (Verdict, string) {
	n := max(seconds(c.input.Config.Data["proxy-read-timeout"]), seconds(c.input.Config.Data["proxy-send-timeout"]))
	if n == 0 {
		return NotNeeded, noSeconds
	}
	c.config.traffic.Request.IdleTimeout = new(inSeconds(n))
	return "", ""
}

func commonRetry(c *conversion, value string) (Verdict, string) {
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 {
		return NotNeeded, "it is no number of tries, or no bound"
	}
	c.config.traffic.Request.Retry = &v1alpha1.TrafficRetry{Attempts: new(int32(min(n-1, maxAttempts)))} //nolint:gosec // at most 10
	return "", ""
}

func commonBalance(c *conversion, value string) (Verdict, string) {
	switch value {
	case "round_robin":
		c.config.traffic.Backend.LoadBalancing = &v1alpha1.LoadBalancing{Type: v1alpha1.RoundRobinLoadBalancing}
		return "", ""
	case "ewma":
		return Differs, "the endpoint with fewer requests under way is taken, which is the default"
	}
	return NotNeeded, "ingress-nginx has no such algorithm, and takes its default"
}

func commonHidden(c *conversion, value string) (Verdict, string) {
	list := words(value)
	if len(list) == 0 {
		return NotNeeded, "it is empty"
	}
	if len(list) > 16 || slices.ContainsFunc(list, func(name string) bool { return !headerName.MatchString(name) }) {
		return NotPossible, "response.headers.remove of a TrafficPolicy takes 16 names of headers"
	}
	c.config.traffic.Response.Headers = &v1alpha1.AnswerHeaders{Remove: list}
	return "", ""
}

func commonCompression(algorithm v1alpha1.CompressionType) func(*conversion, string) (Verdict, string) {
	return func(c *conversion, value string) (Verdict, string) {
		if !isOn(value, false) {
			return NotNeeded, "it is off"
		}
		t := &c.config.traffic.Response
		if t.Compression == nil {
			t.Compression = &v1alpha1.Compression{}
		}
		t.Compression.Algorithms = append(t.Compression.Algorithms, v1alpha1.CompressionAlgorithm{Type: algorithm})
		return "", ""
	}
}

// commonAddresses adds a rule of the Gateway about addresses.
func (c *conversion) commonAddresses(rule, value string, of func(*v1alpha1.AuthAddresses) *[]string) (Verdict, string) {
	list, wrong := ranges(value)
	switch {
	case wrong != "":
		return NotPossible, fmt.Sprintf("%q is neither an address nor a network", wrong)
	case len(list) == 0:
		return NotNeeded, "it is empty"
	}
	if c.config.addresses == nil {
		c.config.addresses = map[string]v1alpha1.Authorization{}
	}
	if c.config.addresses[rule].Addresses == nil {
		c.config.addresses[rule] = v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{}}
	}
	to := of(c.config.addresses[rule].Addresses)
	*to = append(*to, list...)
	return "", ""
}

func commonAllowed(c *conversion, value string) (Verdict, string) {
	return c.commonAddresses(allowRule, value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Allow })
}

func commonDenied(c *conversion, value string) (Verdict, string) {
	return c.commonAddresses(denyRule, value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Deny })
}

func commonBlocked(c *conversion, value string) (Verdict, string) {
	return c.commonAddresses("blocked", value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Deny })
}

// addCommon makes the policies of the Gateway. What an Ingress says takes the place of the same setting or rule, and of no other one.
func (c *conversion) addCommon() {
	settings := c.config.traffic
	settings.Request.MaxBodySize, settings.Response.StrictTransportSecurity = c.config.bodySize, c.config.hsts
	name := c.options.Gateway
	o := &v1alpha1.TrafficPolicy{ObjectMeta: meta(name.Namespace, name.Name)}
	o.Spec.TargetRefs = target(gwv1.GroupName, "Gateway", name.Name)
	o.Spec.Defaults = &v1alpha1.TrafficLayer{Strategy: v1alpha1.Merge, TrafficSettings: settings}
	if !reflect.ValueOf(settings).IsZero() {
		c.add(o)
	}
	if c.config.addresses != nil {
		p := &v1alpha1.AuthPolicy{ObjectMeta: meta(name.Namespace, name.Name)}
		p.Spec.TargetRefs = target(gwv1.GroupName, "Gateway", name.Name)
		p.Spec.Defaults = &v1alpha1.AuthLayer{Strategy: v1alpha1.Merge, AuthRules: v1alpha1.AuthRules{Authorization: c.config.addresses}}
		c.add(p)
	}
}
