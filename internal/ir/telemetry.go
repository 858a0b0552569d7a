package ir

// Telemetry is what a listener tells of what it serves.
type Telemetry struct {
	AccessLogs []AccessLog `json:"accessLogs,omitempty"`
	Tracing    *Tracing    `json:"tracing,omitempty"`
}

// AccessLog is one place where a line for each request, connection or session goes.
type AccessLog struct {
	// Path is a file. Empty, Collector gets log records instead.
	Path      string     `json:"path,omitempty"`
	Collector *Collector `json:"collector,omitempty"`

	// Text is the format of a line; an empty one is the proxy's own. Where it is nil,
	// Fields, with a name and a format each, become an object; where there are none of
	// them either, a default set of fields does.
	Text   *string           `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// Tracing sends spans of requests to a collector.
type Tracing struct {
	Collector Collector `json:"collector"`
	// Sampling is how many of a million requests are traced that come without a
	// decision; more than 0.
	Sampling uint32 `json:"sampling"`
}

// Collector is who takes telemetry, by OTLP over gRPC.
type Collector struct {
	Host    string `json:"host"` // an IP address or a DNS name
	Port    uint16 `json:"port"`
	Service string `json:"service"` // the service.name of what is sent
}

// Collectors yields those that a listener's telemetry names.
func (t *Telemetry) Collectors(yield func(*Collector) bool) {
	for i := range t.AccessLogs {
		if c := t.AccessLogs[i].Collector; c != nil && !yield(c) {
			return
		}
	}
	if t.Tracing != nil {
		yield(&t.Tracing.Collector)
	}
}
