package proxy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// BootstrapOptions are what one Envoy's bootstrap depends on.
type BootstrapOptions struct {
	// Gateway is whose Envoy it is: Envoy shows namespace/name as its node id and cluster.
	Gateway object.Name
	// XDSSocket is the Unix socket of the control plane, an absolute path.
	XDSSocket string
	// AdminSocket is the Unix socket that Envoy's admin interface listens on,
	// an absolute path in a private directory. Beside it is LimitsSocket.
	AdminSocket string
	// BackendStats keeps statistics of every cluster too.
	BackendStats bool
	// Additions, if not empty, are YAML or JSON of a Bootstrap that is merged
	// into ours: objects are merged, lists appended, null removes a field.
	Additions []byte
}

// These are the static clusters: the control plane, and what counts for all proxies of a Gateway.
const (
	xdsCluster    = "xds"
	LimitsCluster = "gatehouse-limits"
)

// LimitsSocket is the name of the Unix socket of what counts for all proxies of a Gateway.
// Nothing needs to listen there as long as no limit is counted so.
const LimitsSocket = "limits.sock"

// untilThere makes Envoy wait for its first clusters and listeners however long
// that takes. By default it gives up after 15 s and calls itself live with none.
const untilThere = "0s"

// keptStats are the prefixes of the statistics that Envoy keeps; all others
// are not even created.
//
// There is deliberately nothing of a cluster, unless asked for: 112 statistics each are half of
// Envoy's memory at 5,000 clusters and most of its stalls (29 against 58 kB a
// cluster). What is left grows with the listeners, not with the routes. All are
// plain prefixes that end in a dot, which Envoy compares without building the
// string of every statistic that it rejects, as it must for a regex.
var keptStats = []string{
	"server.",           // state, uptime, memory, connections
	"listener_manager.", // what became of LDS updates
	"cluster_manager.",  // what became of CDS updates
	"listener.",         // connections and TLS errors by address
	"http.",             // requests and answers by stat_prefix
	"tcp.",              // connections by stat_prefix
	"udp.",              // sessions by stat_prefix
	"control_plane.",    // connected to us, or not
	"overload.",         // whether connections become few
	names.Prefix + ".",  // requests by route, see figuresSink
}

// maxRegexProgram replaces Envoy's limit of 100 for the size of a compiled
// regex. Whether a route's regex is acceptable is decided before Envoy sees it,
// where the answer can name the route; 100 would refuse many harmless ones.
const maxRegexProgram = 1 << 20

// Bootstrap renders the configuration that Envoy is started with. Equal options
// give equal bytes, as long as the system allows as many open files.
func Bootstrap(o BootstrapOptions) ([]byte, error) {
	limitsSocket := filepath.Join(filepath.Dir(o.AdminSocket), LimitsSocket)
	for _, path := range []string{o.XDSSocket, o.AdminSocket, limitsSocket} {
		if err := CheckSocketPath(path); err != nil {
			return nil, err
		}
	}
	patterns := make([]stringMatcher, len(keptStats), len(keptStats)+1)
	for i, prefix := range keptStats {
		patterns[i] = stringMatcher{Prefix: prefix}
	}
	if o.BackendStats {
		patterns = append(patterns, stringMatcher{Prefix: "cluster."})
	}
	b := bootstrap{
		Node: node{ID: o.Gateway.String(), Cluster: o.Gateway.String()},
		// The mode is 0600, because whoever reaches the admin interface controls the
		// proxy.
		Admin: admin{Address: address{Pipe: pipe{Path: o.AdminSocket, Mode: 0o600}}},
		DynamicResources: dynamicResources{
			ADS: apiConfigSource{
				APIType:             "DELTA_GRPC",
				TransportAPIVersion: "V3",
				// The node does not change while a stream lasts.
				SetNodeOnFirstMessageOnly: true,
				GRPCServices: []grpcService{{EnvoyGRPC: envoyGRPC{
					ClusterName: xdsCluster,
					// Without it the pause after a lost control plane has
					// been 10.7 s; with it, about one second.
					RetryPolicy: retryPolicy{BackOff: backOff{BaseInterval: "0.1s", MaxInterval: "1s"}},
				}}},
			},
			CDS: adsConfigSource{ResourceAPIVersion: "V3", InitialFetchTimeout: untilThere},
			LDS: adsConfigSource{ResourceAPIVersion: "V3", InitialFetchTimeout: untilThere},
		},
		StaticResources: staticResources{Clusters: []staticCluster{clusterAt(xdsCluster, o.XDSSocket), limitsClusterAt(limitsSocket)}},
		ClusterManager: clusterManager{
			// A worker builds its part of a cluster when traffic first needs
			// it: 24 instead of 29 kB a cluster.
			EnableDeferredClusterCreation: true,
		},
		StatsConfig: statsConfig{
			Tags:    []fixedTag{{Name: "gateway", Value: o.Gateway.String()}},
			Matcher: statsMatcher{InclusionList: inclusionList{Patterns: patterns}},
			Buckets: []histogramBuckets{figuresBuckets},
		},
		StatsSinks: []statsSink{figuresSink},
		// Figures of routes that are gone, or at rest, take no memory.
		StatsEvictionInterval: "600s",
		DeferredStatOptions:   deferredStatOptions{EnableDeferredCreationStats: true},
		// Figures are reported when the supervisor asks for it: not while nobody can take
		// them, and once more before an Envoy ends.
		StatsFlushOnAdmin: true,
		OverloadManager:   underPressure(connectionLimit(openFiles())),
		LayeredRuntime: layeredRuntime{Layers: []runtimeLayer{{
			Name: "gatehouse",
			Static: map[string]any{
				"re2.max_program_size.error_level": maxRegexProgram,
				// By it requests are counted by headers and claims: see envoy.formatted.
				"envoy.reloadable_features.enable_formatter_for_ratelimit_action_descriptor_value": true,
			},
		}}},
	}
	raw, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("bootstrap of Gateway %s: %w", o.Gateway, err)
	}
	if len(o.Additions) > 0 {
		if raw, err = mergeBootstrap(raw, o.Additions); err != nil {
			return nil, fmt.Errorf("bootstrap of Gateway %s: %w", o.Gateway, err)
		}
	}
	return append(raw, '\n'), nil
}

// limitsClusterAt has no bound of its own: who is turned away here passes uncounted.
func limitsClusterAt(socket string) staticCluster {
	c := clusterAt(LimitsCluster, socket)
	// Requests wait for answers, though not for long: one that is gone is to be noticed soon.
	options := c.TypedExtensionProtocolOptions[httpOptions]
	options.ExplicitHTTPConfig.HTTP2.Keepalive = keepalive{Interval: "10s", Timeout: "3s"}
	c.TypedExtensionProtocolOptions[httpOptions] = options
	c.CircuitBreakers = &circuitBreakers{Thresholds: []thresholds{{
		MaxConnections: unbounded, MaxPendingRequests: unbounded, MaxRequests: unbounded,
	}}}
	return c
}

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

func clusterAt(name, socket string) staticCluster {
	return staticCluster{
		Name:           name,
		Type:           "STATIC",
		ConnectTimeout: "1s",
		LoadAssignment: loadAssignment{
			ClusterName: name,
			Endpoints: []localityEndpoints{{Endpoints: []lbEndpoint{{
				Endpoint: endpoint{Address: address{Pipe: pipe{Path: socket}}},
			}}}},
		},
		TypedExtensionProtocolOptions: map[string]httpProtocolOptions{
			httpOptions: {
				Type: "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
				ExplicitHTTPConfig: explicitHTTPConfig{HTTP2: http2Options{
					// A dead peer on a Unix socket is noticed at once; this is
					// for one that hangs, and generous to one that is busy.
					Keepalive: keepalive{Interval: "30s", Timeout: "10s"},
				}},
			},
		},
	}
}

// maxSocketPath is the longest path that fits a sockaddr_un with its final NUL.
var maxSocketPath = map[string]int{"linux": 107, "darwin": 103}

// CheckSocketPath says whether a Unix socket can live at this path. Callers
// check before they choose a directory, since the limit (107 bytes on Linux,
// 103 on macOS) is met by ordinary temporary directories.
func CheckSocketPath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the Unix socket path %q is not absolute", path)
	}
	limit, ok := maxSocketPath[runtime.GOOS]
	if !ok {
		limit = 103
	}
	if len(path) > limit {
		return fmt.Errorf("the Unix socket path %s has %d bytes, the system allows %d: "+
			"choose a shorter directory", path, len(path), limit)
	}
	return nil
}
