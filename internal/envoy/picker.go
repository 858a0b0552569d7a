package envoy

import (
	"net/http"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	overridehostv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What the endpoint picker protocol of the Gateway API's inference extension calls things (its proposal 004).
const (
	destination       = "x-gateway-destination-endpoint" // a header, and a key of metadata
	destinationServed = "x-gateway-destination-endpoint-served"
	pickerNamespace   = "envoy.lb" // of metadata
)

// Two filters have a picker choose an endpoint. They stand in every chain, and backends with a picker enable them: the
// first asks, and the second refuses what the picker has said nothing of, since to the first an answer without a word
// about the endpoint, and a stream that ends without an answer, are fine.
const (
	pickerFilter = "gatehouse.endpoint_picker"
	pickedFilter = "gatehouse.endpoint_picked"
)

// pickerTimeout is how long a picker may take for a word.
const pickerTimeout = 10 * time.Second

var pickerFilters = []*hcmv3.HttpFilter{
	optional(pickerFilter, &extprocv3.ExternalProcessor{
		GrpcService:   pickerService(ir.NamedBackend(InvalidBackend)),
		StatusOnError: &typev3.HttpStatus{Code: http.StatusServiceUnavailable},
		ProcessingMode: &extprocv3.ProcessingMode{
			RequestHeaderMode: extprocv3.ProcessingMode_SEND, ResponseHeaderMode: extprocv3.ProcessingMode_SEND,
			RequestBodyMode: extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED, ResponseBodyMode: extprocv3.ProcessingMode_FULL_DUPLEX_STREAMED,
			RequestTrailerMode: extprocv3.ProcessingMode_SEND, ResponseTrailerMode: extprocv3.ProcessingMode_SEND,
		},
		// A picker may have to wait for all of a request, since the model is named in its body.
		MessageTimeout: duration(pickerTimeout),
		// Who may pass has been decided for the route that was chosen.
		RouteCacheAction: extprocv3.ExternalProcessor_RETAIN,
		MutationRules: &mutationv3.HeaderMutationRules{
			DisallowExpression: regex(unaltered + "|host|:.*|" + internalHeaders + ".*|x-gatehouse-.*"),
		},
		MetadataOptions: &extprocv3.MetadataOptions{
			ForwardingNamespaces: &extprocv3.MetadataOptions_MetadataNamespaces{Untyped: []string{pickerNamespace}},
			ReceivingNamespaces:  &extprocv3.MetadataOptions_MetadataNamespaces{Untyped: []string{pickerNamespace}},
		},
	}),
	optional(pickedFilter, &luav3.Lua{}),
}

// pickedSource refuses requests without an endpoint. It runs after the picker has answered.
const pickedSource = `function envoy_on_request(handle)
  local said = handle:streamInfo():dynamicMetadata():get("` + pickerNamespace + `")
  if (said and said["` + destination + `"] or "") == "" and (handle:headers():get("` + destination + `") or "") == "" then
    handle:respond({[":status"] = "503"}, "no endpoint was picked")
  end
end
`

var picked = constant(&luav3.LuaPerRoute{Override: &luav3.LuaPerRoute_SourceCode{SourceCode: inlined(compact(pickedSource))}})

func pickerService(k ir.BackendKey) *corev3.GrpcService {
	// The stream lasts as long as the request, so that it has no timeout.
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: ClusterName(k)}}}
}

// setPicker has the picker of a backend asked, by the filters that are enabled for a route or one of its clusters. What
// clients say of endpoints is removed before.
func setPicker(filters *map[string]*anypb.Any, backend ir.BackendKey) error {
	p := backend.Picker()
	if p.IsZero() {
		return nil
	}
	if err := tell(filters, pickerFilter, &extprocv3.ExtProcPerRoute{Override: &extprocv3.ExtProcPerRoute_Overrides{Overrides: &extprocv3.ExtProcOverrides{
		GrpcService: pickerService(p.Service), FailureModeAllow: wrapperspb.Bool(p.Failure == ir.PickerFailOpen),
	}}}); err != nil {
		return err
	}
	if p.Failure != ir.PickerFailOpen {
		put(filters, pickedFilter, picked)
	}
	return changeRequests(filters, removeHeaders(exactly(destination)))
}

// picking sends each request to the first of the endpoints that its picker has named and that the backend has, and those
// without one where the backend's balancer says. The picker is told which it was.
func picking(s *ir.BackendSettings) (*clusterv3.LoadBalancingPolicy, error) {
	var among message = &leastrequestv3.LeastRequest{}
	switch s.Balancer {
	case ir.RoundRobin:
		among = &roundrobinv3.RoundRobin{}
	case ir.Random:
		among = &randomv3.Random{}
	case ir.LeastRequest, ir.ConsistentHash, ir.Maglev:
	}
	fallback, err := balancing("otherwise", among)
	if err != nil {
		return nil, err
	}
	return balancing("picked", &overridehostv3.OverrideHost{
		OverrideHostSources: []*overridehostv3.OverrideHost_OverrideHostSource{{Metadata: inMetadata(destination)}, {Header: destination}},
		SelectedHostKey:     inMetadata(destinationServed),
		FallbackPolicy:      fallback,
	})
}

func inMetadata(key string) *metadatav3.MetadataKey {
	return &metadatav3.MetadataKey{Key: pickerNamespace, Path: []*metadatav3.MetadataKey_PathSegment{{
		Segment: &metadatav3.MetadataKey_PathSegment_Key{Key: key},
	}}}
}

// balancing is a policy by which endpoints are chosen.
func balancing(name string, m message) (*clusterv3.LoadBalancingPolicy, error) {
	config, err := pack(m)
	if err != nil {
		return nil, err
	}
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: name, TypedConfig: config},
	}}}, nil
}
