package envoy

import (
	"fmt"
	"regexp"
	"strings"
)

// The operators of formats that Envoy has by itself: those that take nothing in
// parentheses, those that may, and those that must.
const (
	bareOperators = `
		ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID
		CONNECTION_TERMINATION_DETAILS DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
		DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DETECTED_CLOSE_TYPE
		DOWNSTREAM_DIRECT_LOCAL_ADDRESS DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT
		DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS
		DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_REMOTE_PORT
		DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED DOWNSTREAM_HEADER_BYTES_SENT
		DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_LOCAL_CLOSE_REASON
		DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN
		DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT
		DOWNSTREAM_LOCAL_URI_SAN DOWNSTREAM_PEER_CERT DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1
		DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256 DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN
		DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_FINGERPRINT_256
		DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_SERIAL
		DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS
		DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER
		DOWNSTREAM_TLS_SESSION_ID DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON
		DOWNSTREAM_WIRE_BYTES_RECEIVED DOWNSTREAM_WIRE_BYTES_SENT DURATION FILTER_CHAIN_NAME
		GRPC_STATUS_NUMBER HOSTNAME PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES
		REQUEST_TX_DURATION RESPONSE_CODE RESPONSE_CODE_DETAILS RESPONSE_DURATION RESPONSE_FLAGS
		RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION ROUTE_NAME
		SPAN_ID STREAM_ID TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER
		UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_POOL_READY_DURATION
		UPSTREAM_DETECTED_CLOSE_TYPE UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT UPSTREAM_HOST
		UPSTREAM_HOSTS_ATTEMPTED UPSTREAM_HOST_NAME UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS
		UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT UPSTREAM_LOCAL_CLOSE_REASON UPSTREAM_LOCAL_PORT
		UPSTREAM_PEER_CERT UPSTREAM_PEER_DNS_SAN UPSTREAM_PEER_ISSUER UPSTREAM_PEER_SUBJECT
		UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT
		UPSTREAM_REMOTE_PORT UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_TLS_CIPHER UPSTREAM_TLS_SESSION_ID
		UPSTREAM_TLS_VERSION UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED
		UPSTREAM_WIRE_BYTES_SENT`
	openOperators = `
		DOWNSTREAM_PEER_CERT_V_END DOWNSTREAM_PEER_CERT_V_START EMIT_TIME EMIT_TIME_LOCAL GRPC_STATUS PATH
		QUERY_PARAMS START_TIME START_TIME_LOCAL UPSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START`
	namingOperators = `
		CLUSTER_METADATA COMMON_DURATION DYNAMIC_METADATA ENVIRONMENT FILTER_STATE QUERY_PARAM REQ RESP
		TRAILER UPSTREAM_FILTER_STATE UPSTREAM_METADATA`
)

var (
	bare   = words(bareOperators)
	open   = words(openOperators)
	naming = words(namingOperators)
)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		out[name] = true
	}
	return out
}

// operator is how Envoy reads one: a name, what it is about, and the length to cut
// the value to.
var operator = regexp.MustCompile(`^%([A-Z0-9_]+)(\([^)]*\))?(:[0-9]{1,5})?%`)

// cut are the operators whose value may be cut to a length.
var cut = words("DYNAMIC_METADATA ENVIRONMENT FILTER_STATE PATH QUERY_PARAM QUERY_PARAMS REQ RESP TRAILER UPSTREAM_FILTER_STATE")

// abouts say of some operators what may be in parentheses.
var abouts = func() map[string]*regexp.Regexp {
	header := regexp.MustCompile("^[-:!#$%&'*+.^_`|~0-9A-Za-z]*([?][-:!#$%&'*+.^_`|~0-9A-Za-z]*)?$")
	state := regexp.MustCompile(`^[^:]+(:(PLAIN|TYPED|FIELD:[^:]+))?$`)
	return map[string]*regexp.Regexp{
		"REQ": header, "RESP": header, "TRAILER": header, "FILTER_STATE": state, "UPSTREAM_FILTER_STATE": state,
		"COMMON_DURATION": regexp.MustCompile(`^[^:]+:[^:]+(:(ms|us|ns))?$`),
		"GRPC_STATUS":     regexp.MustCompile(`^(CAMEL_STRING|SNAKE_STRING|NUMBER)?$`),
		"PATH":            regexp.MustCompile(`^((WQ|NQ)(:(ORIG|PATH|ORIG_OR_PATH))?)?$`),
		"QUERY_PARAMS":    regexp.MustCompile(`^(ORIG|DECODED)?$`),
	}
}()

// CheckFormat finds what Envoy would refuse of the format of an access log.
func CheckFormat(format string) error {
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			return nil
		}
		format = format[i:]
		if strings.HasPrefix(format, "%%") {
			format = format[2:]
			continue
		}
		found := operator.FindStringSubmatch(format)
		if found == nil {
			return fmt.Errorf("%q doesn't begin an operator such as %%RESPONSE_CODE%% or %%REQ(USER-AGENT)%%; write %%%% for a percent sign", shortened(format))
		}
		name, about, length := found[1], found[2], found[3]
		switch {
		case bare[name] && about != "":
			return fmt.Errorf("operator %s takes nothing in parentheses", name)
		case naming[name] && len(about) <= len("()"):
			return fmt.Errorf("operator %s must say in parentheses what it is about", name)
		case !bare[name] && !naming[name] && !open[name]:
			return fmt.Errorf("there is no operator %s; see https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/advanced/substitution_formatter", name)
		}
		if length != "" && !cut[name] {
			return fmt.Errorf("the value of operator %s can't be cut to a length (%s)", name, length)
		}
		if fits := abouts[name]; fits != nil && !fits.MatchString(strings.TrimSuffix(strings.TrimPrefix(about, "("), ")")) {
			return fmt.Errorf("operator %s can't be about %s", name, shortened(about))
		}
		format = format[len(found[0]):]
	}
}

func shortened(s string) string {
	const most = 20
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
