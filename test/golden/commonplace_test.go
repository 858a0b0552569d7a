package golden

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// plain is the golden file that prints what every other leaves out.
const plain = "plain.txtar"

// constants are the fields that say the same in every resource that has them, by
// their path without list indices. They are left out where they are as in the
// plain golden file, and only there: another value is always printed, and so is,
// as null, that one is missing which all resources of the plain file have.
var constants = []string{
	"resources.cluster.resource.circuitBreakers",
	"resources.cluster.resource.edsClusterConfig",
	"resources.cluster.resource.lbPolicy",
	"resources.cluster.resource.perConnectionBufferLimitBytes",
	"resources.cluster.resource.typedExtensionProtocolOptions",
	"resources.listener.resource.enableReusePort",
	"resources.listener.resource.perConnectionBufferLimitBytes",
	"resources.listener.resource.listenerFilters",
	"resources.listener.resource.listenerFiltersTimeout",
	manager + ".accessLog",
	manager + ".commonHttpProtocolOptions",
	manager + ".earlyHeaderMutationExtensions",
	manager + ".http2ProtocolOptions",
	manager + ".httpFilters",
	manager + ".internalAddressConfig",
	manager + ".localReplyConfig",
	manager + ".maxRequestHeadersKb",
	manager + ".mergeSlashes",
	manager + ".normalizePath",
	manager + ".pathWithEscapedSlashesAction",
	manager + ".rds.configSource",
	manager + ".requestHeadersTimeout",
	manager + ".schemeHeaderTransformation",
	manager + ".serverHeaderTransformation",
	manager + ".skipXffAppend",
	manager + ".streamIdleTimeout",
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
	"resources.routes.resource.maxDirectResponseBodySizeBytes",
}

const (
	chain   = "resources.listener.resource.filterChains"
	manager = chain + ".filters.typedConfig(HttpConnectionManager)"
	tls     = chain + ".transportSocket.typedConfig(DownstreamTlsContext)"
)

// constant is what the plain golden file says of a constant field.
type constant struct {
	value any
	all   bool // whether every object that could have the field has it
}

var (
	usual     map[string]constant
	usualOnce sync.Once
)

// commonplace returns the constants by their path.
func commonplace(t *testing.T) map[string]constant {
	t.Helper()
	usualOnce.Do(func() {
		p := read(t, filepath.Join("testdata", plain)).evaluate(t)
		usual = collect(stage[[]map[string]any](t, p, view.StageXDS))
	})
	return usual
}

// collect notes the constants of resources.
func collect(xds []map[string]any) map[string]constant {
	found := map[string]constant{}
	places, taken := map[string]int{}, map[string]int{}
	inside(xds, func(m map[string]any, at string) {
		places[at]++
		for name, value := range m {
			if field := below(at, name); slices.Contains(constants, field) {
				found[field] = constant{value: value}
				taken[field]++
			}
		}
	})
	for field, c := range found {
		c.all = taken[field] == places[field[:strings.LastIndexByte(field, '.')]]
		found[field] = c
	}
	return found
}

// subtract removes the constants that have the usual value from resources.
func subtract(xds []map[string]any, usual map[string]constant) {
	inside(xds, func(m map[string]any, at string) {
		for field, c := range usual {
			name, ok := strings.CutPrefix(field, at+".")
			if !ok || strings.Contains(name, ".") {
				continue
			}
			value, has := m[name]
			switch {
			case has && reflect.DeepEqual(value, c.value):
				delete(m, name)
			case !has && c.all:
				m[name] = nil
			}
		}
	})
}

// inside calls visit for every object of the resources with its path, in which
// extensions stand with their types: what one kind of filter has, another lacks.
func inside(xds []map[string]any, visit func(m map[string]any, at string)) {
	for _, gateway := range xds {
		within(gateway, "", visit)
	}
}

func within(v any, at string, visit func(m map[string]any, at string)) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			within(inner, at, visit)
		}
	case map[string]any:
		if url, ok := v["@type"].(string); ok {
			at += "(" + url[strings.LastIndexByte(url, '.')+1:] + ")"
		}
		for name, inner := range v {
			within(inner, below(at, name), visit)
		}
		visit(v, at)
	}
}

func below(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }
