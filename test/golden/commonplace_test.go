package golden

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/control"
)

// plain is the golden file that prints what every other leaves out.
const plain = "plain.txtar"

// constants are the fields that say the same in every resource that has them, by
// their path without list indices. They are left out where they are as in the
// plain golden file, and only there: what differs is always printed.
var constants = []string{
	"resources.cluster.resource.circuitBreakers",
	"resources.cluster.resource.edsClusterConfig",
	"resources.cluster.resource.lbPolicy",
	"resources.cluster.resource.perConnectionBufferLimitBytes",
	"resources.listener.resource.enableReusePort",
	"resources.listener.resource.perConnectionBufferLimitBytes",
	"resources.listener.resource.listenerFilters",
	manager + ".http2ProtocolOptions",
	manager + ".httpFilters",
	manager + ".internalAddressConfig",
	manager + ".normalizePath",
	manager + ".rds.configSource",
	manager + ".requestHeadersTimeout",
	manager + ".serverHeaderTransformation",
	manager + ".upgradeConfigs",
	manager + ".useRemoteAddress",
	manager + ".@type",
	chain + ".filters.name",
	chain + ".transportSocketConnectTimeout",
	chain + ".transportSocket.name",
	tls + ".@type",
	tls + ".commonTlsContext.alpnProtocols",
	tls + ".commonTlsContext.tlsParams",
	tls + ".commonTlsContext.tlsCertificateSdsSecretConfigs.sdsConfig",
	"resources.routes.resource.ignorePortInHostMatching",
}

const (
	chain   = "resources.listener.resource.filterChains"
	manager = chain + ".filters.typedConfig"
	tls     = chain + ".transportSocket.typedConfig"
)

var (
	usual     map[string]any
	usualOnce sync.Once
)

// commonplace returns the values of the constants in the plain golden file.
func commonplace(t *testing.T) map[string]any {
	t.Helper()
	usualOnce.Do(func() {
		p := read(t, filepath.Join("testdata", plain)).evaluate(t)
		usual = map[string]any{}
		collect(stage[[]map[string]any](t, p, control.StageXDS), "", usual)
	})
	return usual
}

// collect notes the values of the constants of a document.
func collect(v any, path string, into map[string]any) {
	fields(v, path, func(m map[string]any, name, at string) {
		if slices.Contains(constants, at) {
			into[at] = m[name]
		}
	})
}

// subtract removes the constants that have the usual value.
func subtract(v any, path string, values map[string]any) {
	fields(v, path, func(m map[string]any, name, at string) {
		if value, ok := values[at]; ok && reflect.DeepEqual(value, m[name]) {
			delete(m, name)
		}
	})
}

// fields calls visit for every field of a document with its path.
func fields(v any, path string, visit func(m map[string]any, name, at string)) {
	switch v := v.(type) {
	case []map[string]any:
		for _, inner := range v {
			fields(inner, path, visit)
		}
	case []any:
		for _, inner := range v {
			fields(inner, path, visit)
		}
	case map[string]any:
		for name, inner := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			visit(v, name, at)
			fields(inner, at, visit)
		}
	}
}
