package envoy

import (
	"maps"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// logging is a setup with an access log.
func logging(log ir.AccessLog) *setup {
	s := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Status: 204}))
	log.Path = "/dev/null"
	s.listeners[0].Telemetry.AccessLogs = []ir.AccessLog{log}
	return s
}

// TestEnvoyKnowsOperators protects access logs from a table that says more than
// Envoy knows: it must take every operator that we let through.
func TestEnvoyKnowsOperators(t *testing.T) {
	about := map[string]string{
		"CLUSTER_METADATA": "a:b", "COMMON_DURATION": "DS_RX_BEG:DS_TX_END:ms", "DYNAMIC_METADATA": "a:b",
		"UPSTREAM_METADATA": "a:b",
	}
	fields := map[string]string{}
	for name := range bare {
		fields[name] = "%" + name + "%"
	}
	for name := range open {
		fields[name] = "%" + name + "%"
	}
	for name := range naming {
		if fields[name] = "%" + name + "(a)%"; about[name] != "" {
			fields[name] = "%" + name + "(" + about[name] + ")%"
		}
	}
	for name, format := range fields {
		if err := CheckFormat(format); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := logging(ir.AccessLog{Fields: fields}).validate(t); err != nil {
		t.Error(err)
	}
	for _, usual := range []logFormat{requestLog, tcpLog, udpLog} {
		all := maps.Clone(usual.fields)
		all["line"], all["Envoy's own"] = usual.line, envoyLine
		for name, format := range all {
			if err := CheckFormat(format); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestCheckFormat protects listeners from formats that Envoy refuses, with all that
// they serve.
func TestCheckFormat(t *testing.T) {
	for _, good := range []string{"", "plain", "100%% %RESPONSE_CODE%", "%REQ(X?Y):10% %START_TIME(%s)%", "%START_TIME(%Y-%m-%dT%H:%M:%S)%"} {
		if err := CheckFormat(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
		if err := logging(ir.AccessLog{Text: &good}).validate(t); err != nil {
			t.Errorf("%q: Envoy refuses it: %v", good, err)
		}
	}
	for _, bad := range []string{"100%", "%RESPONSE_CODE", "%NONESUCH%", "%response_code%", "%REQ%", "%REQ()%", "%RESPONSE_CODE(a)%", "% %", "%REQ(a%",
		"%RESPONSE_CODE:5%", "%START_TIME(%s):5%", "%REQ(a b)%", "%REQ(a?b?c)%", "%GRPC_STATUS(x)%", "%FILTER_STATE(a:x)%", "%PATH(x)%", "%COMMON_DURATION(a)%",
	} {
		if CheckFormat(bad) == nil {
			t.Errorf("%q is let through", bad)
		}
	}
}
