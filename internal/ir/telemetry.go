package ir

// Telemetry is what a listener reports about what it serves.
type Telemetry struct {
	AccessLogs []AccessLog `json:"accessLogs,omitempty"`
	Tracing    *Tracing    `json:"tracing,omitempty"`
	Figures    Figures     `json:"figures,omitempty"`
}

// Figures is what is counted of the requests of routes. The zero value is all but their bytes.
type Figures string

// The other values of Figures.
const (
	WithBytes Figures = "WithBytes"
	NoFigures Figures = "None"
)

// AccessLog is one place where a line for each request, connection or session goes.
type AccessLog struct {
	// Path is a file. Empty, Collector gets log records instead.
	Path      string     `json:"path,omitempty"`
	Collector *Collector `json:"collector,omitempty"`

	// Text is the format of a line. An empty one stands for the proxy's own format. If
	// Text is nil, a line is an object of Fields, which have a name and a format each.
	// If there are no Fields either, it is an object of a default set of fields.
	Text   *string           `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// Tracing sends spans of requests to a collector.
type Tracing struct {
	Collector Collector `json:"collector"`
	// Sampling is how many of a million requests are traced, of those that come without
	// a decision. It is more than 0.
	Sampling uint32 `json:"sampling"`
}

// Collector is a service that takes telemetry, by OTLP over gRPC.
type Collector struct {
	Host    string `json:"host"` // an IP address or a DNS name
	Port    uint16 `json:"port"`
	Service string `json:"service"` // the service.name of what is sent
}

// Collectors yields the collectors that a listener's telemetry names.
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
