package envoy

import (
	"maps"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	fileaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	otelaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// logFormat is what is logged where nobody says what.
type logFormat struct {
	line   string // empty is Envoy's own for requests
	fields map[string]string
}

// requestLog is for requests. No header is in it in which clients send secrets.
var requestLog = logFormat{fields: map[string]string{
	"authority":                         "%REQ(:AUTHORITY)%",
	"bytes_received":                    "%BYTES_RECEIVED%",
	"bytes_sent":                        "%BYTES_SENT%",
	"connection_termination_details":    "%CONNECTION_TERMINATION_DETAILS%",
	"downstream_local_address":          "%DOWNSTREAM_LOCAL_ADDRESS%",
	"downstream_remote_address":         "%DOWNSTREAM_REMOTE_ADDRESS%",
	"duration":                          "%DURATION%",
	"method":                            "%REQ(:METHOD)%",
	"path":                              "%REQ(:PATH)%",
	"protocol":                          "%PROTOCOL%",
	"request_id":                        "%REQ(X-REQUEST-ID)%",
	"requested_server_name":             "%REQUESTED_SERVER_NAME%",
	"response_code":                     "%RESPONSE_CODE%",
	"response_code_details":             "%RESPONSE_CODE_DETAILS%",
	"response_flags":                    "%RESPONSE_FLAGS%",
	"route":                             "%ROUTE_NAME%",
	"start_time":                        "%START_TIME%",
	"trace_id":                          "%TRACE_ID%",
	"upstream_cluster":                  "%UPSTREAM_CLUSTER%",
	"upstream_host":                     "%UPSTREAM_HOST%",
	"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
	"user_agent":                        "%REQ(USER-AGENT)%",
	"x_forwarded_for":                   "%REQ(X-FORWARDED-FOR)%",
}}

// accessLogs returns the access logs of a listener, in a format for what it serves.
func accessLogs(l *ir.Listener, usual logFormat) ([]*accesslogv3.AccessLog, error) {
	if len(l.Telemetry.AccessLogs) == 0 {
		return nil, nil
	}
	usual.fields = maps.Clone(usual.fields)
	usual.fields["gateway"] = l.Gateway.String()
	var out []*accesslogv3.AccessLog
	for i := range l.Telemetry.AccessLogs {
		a := &l.Telemetry.AccessLogs[i]
		name, config, err := "envoy.access_loggers.file", (*anypb.Any)(nil), error(nil)
		if a.Collector == nil {
			config, err = fileLog(a, usual)
		} else {
			name = "envoy.access_loggers.open_telemetry"
			config, err = collectedLog(a, usual)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, &accesslogv3.AccessLog{
			Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
		})
	}
	return out, nil
}

func fileLog(a *ir.AccessLog, usual logFormat) (*anypb.Any, error) {
	log := &fileaccesslogv3.FileAccessLog{Path: a.Path}
	if a.Text == nil {
		fields := logFields(a, usual)
		object := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(fields))}
		for name, format := range fields {
			object.Fields[name] = structpb.NewStringValue(format)
		}
		log.AccessLogFormat = &fileaccesslogv3.FileAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
			Format:          &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: object},
			OmitEmptyValues: true,
		}}
		return pack(log)
	}
	if line := logLine(a, usual); line != "" {
		log.AccessLogFormat = &fileaccesslogv3.FileAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline(strings.TrimSuffix(line, "\n") + "\n")},
		}}
	}
	return pack(log)
}

// envoyLine is Envoy's own format, for where it has to be said.
const envoyLine = `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" ` +
	`%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` +
	`%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ` +
	`"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"`

// collectedLog sends log records: a text as their body, fields as attributes.
func collectedLog(a *ir.AccessLog, usual logFormat) (*anypb.Any, error) {
	log := &otelaccesslogv3.OpenTelemetryAccessLogConfig{
		GrpcService: collectorService(a.Collector),
		// The name and the cluster of a node mean nothing to anybody else.
		DisableBuiltinLabels: true,
		ResourceAttributes:   attributes(map[string]string{"service.name": a.Collector.Service}),
	}
	if a.Text == nil {
		log.Attributes = attributes(logFields(a, usual))
		return pack(log)
	}
	line := logLine(a, usual)
	if line == "" {
		line = envoyLine
	}
	log.Body = text(strings.TrimSuffix(line, "\n"))
	return pack(log)
}

func logFields(a *ir.AccessLog, usual logFormat) map[string]string {
	if len(a.Fields) > 0 {
		return a.Fields
	}
	return usual.fields
}

func logLine(a *ir.AccessLog, usual logFormat) string {
	if *a.Text != "" {
		return *a.Text
	}
	return usual.line
}

func attributes(fields map[string]string) *otlpcommonv1.KeyValueList {
	list := &otlpcommonv1.KeyValueList{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		list.Values = append(list.Values, &otlpcommonv1.KeyValue{Key: name, Value: text(fields[name])})
	}
	return list
}

func text(s string) *otlpcommonv1.AnyValue {
	return &otlpcommonv1.AnyValue{Value: &otlpcommonv1.AnyValue_StringValue{StringValue: s}}
}
