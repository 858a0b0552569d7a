//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collectorlogsv1 "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectortracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// parametersFor returns manifests that give a site's Gateway parameters.
func parametersFor(spec string) map[string]string {
	return map[string]string{
		"parameters.yaml": siteParameters(spec),
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}") +
			"  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: edge}}\n",
	}
}

func siteParameters(spec string) string {
	return fmt.Sprintf(`---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {name: edge, namespace: %s}
spec:
%s
`, siteNamespace, indent(spec))
}

// TestAccessLog protects access logs in files: in the operator's own formats and
// the one that there is without.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	s := startSite(t, parametersFor(fmt.Sprintf(`
accessLog:
- {path: %s}
- {path: %s, json: {host: "%%REQ(:AUTHORITY)%%", code: "%%RESPONSE_CODE%%", agent: "%%REQ(USER-AGENT)%%"}}
- {path: %s, text: "%%PROTOCOL%% %%REQ(:PATH)%% 100%%%%"}
- {path: %s, text: ""}
`, file("default"), file("json"), file("text"), file("envoy"))), "--allow-unsafe-parameters")
	s.answers(t, "http://nobody.example/asked?for=it", 404)
	line := func(name, part string) (line string) {
		eventually(t, siteTimeout, func() error {
			raw, err := os.ReadFile(file(name))
			if err != nil {
				return err
			}
			for l := range strings.Lines(string(raw)) {
				if strings.Contains(l, part) {
					line = strings.TrimSuffix(l, "\n")
					return nil
				}
			}
			return fmt.Errorf("no line with %s in %s", part, raw)
		})
		return line
	}
	object := func(line string) (o map[string]any) {
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return o
	}
	usual := object(line("default", "/asked"))
	for field, want := range map[string]any{
		"authority": "nobody.example", "path": "/asked?for=it", "method": "GET", "response_code": 404.0, "protocol": "HTTP/1.1",
	} {
		if usual[field] != want {
			t.Errorf("%s is %v, want %v", field, usual[field], want)
		}
	}
	if usual["downstream_remote_address"] == nil || usual["start_time"] == nil || usual["user_agent"] == "" {
		t.Errorf("fields are missing: %v", usual)
	}
	if got := object(line("json", "nobody")); len(got) > 3 || got["code"] != 404.0 || got["host"] != "nobody.example" {
		t.Errorf("own fields: %v", got)
	}
	if got := line("text", "/asked"); got != "HTTP/1.1 /asked?for=it 100%" {
		t.Errorf("own text: %s", got)
	}
	if got := line("envoy", "/asked"); !strings.HasPrefix(got, "[2") {
		t.Errorf("Envoy's own: %s", got)
	}

	// A file that can't be opened costs only the change.
	s.write(t, "parameters.yaml", siteParameters("accessLog: [{path: /nonesuch/log}]"))
	s.conditions(t, "Gateway gw", "http", "Programmed=False")
	s.says(t, "Gateway gw", "/nonesuch/log")
	s.serves(t, "home.example", "v1")
	s.write(t, "parameters.yaml", siteParameters("accessLog: []"))
	s.conditions(t, "Gateway gw", "http", "Programmed=True")

	// Parameters that can't be used leave everything as it is.
	s.write(t, "parameters.yaml", siteParameters(`accessLog: [{text: "%NONESUCH%"}]`))
	s.conditions(t, "Gateway gw", "", "Accepted=False/InvalidParameters", "Programmed=True")
	s.says(t, "Gateway gw", "there is no operator NONESUCH")
	s.serves(t, "home.example", "v1")
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
}

// TestUntrustedParameters protects the files of whoever runs manifests of others: Envoy
// makes and appends to whatever file an access log names.
func TestUntrustedParameters(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "authorized_keys")
	s := newSite(t, parametersFor(fmt.Sprintf("accessLog: [{path: %s, text: ssh-ed25519}]", file)))
	s.conditions(t, "Gateway gw", "", "Accepted=False/InvalidParameters")
	s.says(t, "Gateway gw", "spec.accessLog[0].path")
	s.says(t, "Gateway gw", "--allow-unsafe-parameters")
	s.write(t, "parameters.yaml", siteParameters("envoy: {bootstrap: {stats_config: {use_all_default_tags: true}}}"))
	s.says(t, "Gateway gw", "spec.envoy.bootstrap")

	// What is harmless takes effect, and what comes later leaves it in force.
	s.write(t, "parameters.yaml", siteParameters("accessLog: [{path: /dev/stdout}]"))
	s.serves(t, "home.example", "v1")
	s.write(t, "parameters.yaml", siteParameters(fmt.Sprintf("accessLog: [{path: %s}]", file)))
	s.conditions(t, "Gateway gw", "", "Accepted=False/InvalidParameters", "Programmed=True")
	s.serves(t, "home.example", "v1")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file has been made: %v", err)
	}
}

// otlp collects what proxies tell of themselves.
type otlp struct {
	collectorlogsv1.UnimplementedLogsServiceServer
	mu    sync.Mutex
	logs  []*collectorlogsv1.ExportLogsServiceRequest
	spans []*collectortracev1.ExportTraceServiceRequest
}

func (o *otlp) Export(_ context.Context, r *collectorlogsv1.ExportLogsServiceRequest) (*collectorlogsv1.ExportLogsServiceResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logs = append(o.logs, r)
	return &collectorlogsv1.ExportLogsServiceResponse{}, nil
}

type otlpTraces struct {
	collectortracev1.UnimplementedTraceServiceServer
	of *otlp
}

func (o otlpTraces) Export(_ context.Context, r *collectortracev1.ExportTraceServiceRequest) (*collectortracev1.ExportTraceServiceResponse, error) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.of.spans = append(o.of.spans, r)
	return &collectortracev1.ExportTraceServiceResponse{}, nil
}

// collect starts a collector until the test ends.
func collect(t *testing.T) (o *otlp, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o = &otlp{}
	server := grpc.NewServer()
	collectorlogsv1.RegisterLogsServiceServer(server, o)
	collectortracev1.RegisterTraceServiceServer(server, otlpTraces{of: o})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return o, l.Addr().(*net.TCPAddr).Port
}

// texts returns attributes by name.
func texts(list []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		out[kv.Key] = kv.Value.GetStringValue()
	}
	return out
}

// TestOpenTelemetry protects what goes to a collector: log records and spans, under
// the Gateway's name or the one that the operator chose.
func TestOpenTelemetry(t *testing.T) {
	t.Parallel()
	o, port := collect(t)
	s := startSite(t, parametersFor(fmt.Sprintf(`
accessLog:
- openTelemetry: {host: 127.0.0.1, port: %[1]d}
- openTelemetry: {host: localhost, port: %[1]d, serviceName: lines}
  text: "%%REQ(:PATH)%%"
tracing:
  openTelemetry: {host: 127.0.0.1, port: %[1]d, serviceName: edge}
`, port)))
	s.answers(t, "http://home.example/traced", 200)
	eventually(t, siteTimeout, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		found := map[string]string{}
		for _, r := range o.logs {
			for _, resource := range r.ResourceLogs {
				service := texts(resource.Resource.Attributes)["service.name"]
				for _, scope := range resource.ScopeLogs {
					for _, record := range scope.LogRecords {
						if path := texts(record.Attributes)["path"] + record.Body.GetStringValue(); path == "/traced" {
							found[service] = path
						}
					}
				}
			}
		}
		if found["gw.site"] == "" || found["lines"] == "" {
			return fmt.Errorf("log records: %v of %d requests", found, len(o.logs))
		}
		return nil
	})
	eventually(t, siteTimeout, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		kinds := map[tracev1.Span_SpanKind]bool{}
		for _, r := range o.spans {
			for _, resource := range r.ResourceSpans {
				if service := texts(resource.Resource.Attributes)["service.name"]; service != "edge" {
					return fmt.Errorf("a span of service %q", service)
				}
				for _, scope := range resource.ScopeSpans {
					for _, span := range scope.Spans {
						kinds[span.Kind] = true
					}
				}
			}
		}
		if !kinds[tracev1.Span_SPAN_KIND_SERVER] || !kinds[tracev1.Span_SPAN_KIND_CLIENT] {
			return fmt.Errorf("spans: %v of %d requests", kinds, len(o.spans))
		}
		return nil
	})
	// The backend gets the trace's context.
	if got := s.answers(t, "http://home.example/", 200); got.answer.Headers.Get("Traceparent") == "" {
		t.Errorf("no traceparent at the backend: %v", got.answer.Headers)
	}

	s.write(t, "parameters.yaml", siteParameters(fmt.Sprintf(`
accessLog: []
tracing: {openTelemetry: {host: 127.0.0.1, port: %d}, samplingPercent: 0}`, port)))
	eventually(t, siteTimeout, func() error {
		if got := s.answers(t, "http://home.example/", 200); got.answer.Headers.Get("Traceparent") != "" {
			return fmt.Errorf("still traced: %v", got.answer.Headers)
		}
		return nil
	})
}
