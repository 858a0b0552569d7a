package translate

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
)

// defaultPath is where an access log without a path goes.
const defaultPath = "/dev/stdout"

// Telemetry returns what listeners tell of what they serve, by the settings of
// their Gateway, which topology has checked.
func Telemetry(gateway object.Name, s *v1alpha1.Settings) ir.Telemetry {
	var out ir.Telemetry
	for i := range s.AccessLog {
		spec := &s.AccessLog[i]
		log := ir.AccessLog{Text: spec.Text, Fields: spec.JSON}
		switch {
		case spec.OpenTelemetry != nil:
			log.Collector = new(collector(gateway, spec.OpenTelemetry))
		case spec.Path != nil:
			log.Path = *spec.Path
		default:
			log.Path = defaultPath
		}
		out.AccessLogs = append(out.AccessLogs, log)
	}
	if t := s.Tracing; t != nil && t.OpenTelemetry != nil {
		if sampling := parameters.Sampling(t); sampling > 0 {
			out.Tracing = &ir.Tracing{Collector: collector(gateway, t.OpenTelemetry), Sampling: sampling}
		}
	}
	if m := s.Metrics; m != nil {
		switch {
		case m.Routes != nil && !*m.Routes:
			out.Figures = ir.NoFigures
		case m.Bytes != nil && *m.Bytes:
			out.Figures = ir.WithBytes
		}
	}
	return out
}

// collectorPort is OTLP's port for gRPC, which the schema sets too.
const collectorPort = 4317

func collector(gateway object.Name, o *v1alpha1.OpenTelemetry) ir.Collector {
	c := ir.Collector{Host: o.Host, Port: uint16(o.Port), Service: gateway.Name + "." + gateway.Namespace}
	if c.Port == 0 {
		c.Port = collectorPort
	}
	if o.ServiceName != nil {
		c.Service = *o.ServiceName
	}
	return c
}
