package translate

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// xBackendMark begins the names of backends that are XBackends.
const xBackendMark = "XBackend/"

// ParseXBackendName returns the XBackend and the use in a name that BackendName
// made; false for backends that are Services.
func ParseXBackendName(name string) (backend object.Name, use topology.Use, ok bool) {
	rest, ok := strings.CutPrefix(name, xBackendMark)
	if !ok {
		return object.Name{}, "", false
	}
	backend, _, use, ok = ParseBackendName(rest)
	return backend, use, ok
}

// ParseBackendName returns the Service, the port and the use in a name that
// BackendName made.
func ParseBackendName(name string) (service object.Name, port int32, use topology.Use, ok bool) {
	rest, _, ok := strings.Cut(name, "#")
	if !ok {
		return object.Name{}, 0, "", false
	}
	rest, _, _ = strings.Cut(rest, encryptedMark)
	rest, number, ok := strings.Cut(rest, ":")
	if !ok {
		return object.Name{}, 0, "", false
	}
	number, text, _ := strings.Cut(number, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return object.Name{}, 0, "", false
	}
	namespace, title, ok := strings.Cut(rest, "/")
	return object.Name{Namespace: namespace, Name: title}, int32(n), topology.Use(text), ok
}
