package ir

// Picker is a service that is asked about each request to a backend which endpoint it is for, by the endpoint picker
// protocol of the Gateway API's inference extension. It compares, since it makes the backend the one that it is.
type Picker struct {
	Service BackendKey    `json:"service,omitzero"`
	Failure PickerFailure `json:"failure,omitempty"`
}

// PickerFailure is what becomes of requests of which the picker doesn't say an endpoint.
type PickerFailure string

// What becomes of them. The zero value is that they are refused.
const (
	PickerFailClosed PickerFailure = ""
	PickerFailOpen   PickerFailure = "open" // the proxy chooses among all endpoints
)

// IsZero reports whether nobody is asked.
func (p Picker) IsZero() bool { return p == Picker{} }
