package proxy

// The fields of envoy.config.bootstrap.v3.Bootstrap that we set, under Envoy's
// JSON names. Plain structs instead of protos keep go-control-plane out of this
// package; that Envoy accepts them is tested with the real one.

type bootstrap struct {
	Node                  node                `json:"node"`
	Admin                 admin               `json:"admin"`
	DynamicResources      dynamicResources    `json:"dynamic_resources"`
	StaticResources       staticResources     `json:"static_resources"`
	ClusterManager        clusterManager      `json:"cluster_manager"`
	StatsConfig           statsConfig         `json:"stats_config"`
	DeferredStatOptions   deferredStatOptions `json:"deferred_stat_options"`
	StatsFlushOnAdmin     bool                `json:"stats_flush_on_admin"`
	StatsSinks            []statsSink         `json:"stats_sinks"`
	StatsEvictionInterval string              `json:"stats_eviction_interval"`
	OverloadManager       overloadManager     `json:"overload_manager"`
	LayeredRuntime        layeredRuntime      `json:"layered_runtime"`
}

type node struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster"`
}

type admin struct {
	Address address `json:"address"`
}

type address struct {
	Pipe pipe `json:"pipe"`
}

type pipe struct {
	Path string `json:"path"`
	Mode int    `json:"mode,omitempty"`
}

type dynamicResources struct {
	ADS apiConfigSource `json:"ads_config"`
	CDS adsConfigSource `json:"cds_config"`
	LDS adsConfigSource `json:"lds_config"`
}

type apiConfigSource struct {
	APIType                   string        `json:"api_type"`
	TransportAPIVersion       string        `json:"transport_api_version"`
	SetNodeOnFirstMessageOnly bool          `json:"set_node_on_first_message_only"`
	GRPCServices              []grpcService `json:"grpc_services"`
}

type adsConfigSource struct {
	ADS                 struct{} `json:"ads"`
	ResourceAPIVersion  string   `json:"resource_api_version"`
	InitialFetchTimeout string   `json:"initial_fetch_timeout"`
}

type grpcService struct {
	EnvoyGRPC envoyGRPC `json:"envoy_grpc"`
}

type envoyGRPC struct {
	ClusterName string      `json:"cluster_name"`
	RetryPolicy retryPolicy `json:"retry_policy"`
}

type retryPolicy struct {
	BackOff backOff `json:"retry_back_off"`
}

type backOff struct {
	BaseInterval string `json:"base_interval"`
	MaxInterval  string `json:"max_interval"`
}

type staticResources struct {
	Clusters []staticCluster `json:"clusters"`
}

type staticCluster struct {
	Name                          string                         `json:"name"`
	Type                          string                         `json:"type"`
	ConnectTimeout                string                         `json:"connect_timeout"`
	LoadAssignment                loadAssignment                 `json:"load_assignment"`
	CircuitBreakers               *circuitBreakers               `json:"circuit_breakers,omitempty"`
	TypedExtensionProtocolOptions map[string]httpProtocolOptions `json:"typed_extension_protocol_options"`
}

type circuitBreakers struct {
	Thresholds []thresholds `json:"thresholds"`
}

type thresholds struct {
	MaxConnections     uint32 `json:"max_connections"`
	MaxPendingRequests uint32 `json:"max_pending_requests"`
	MaxRequests        uint32 `json:"max_requests"`
}

// unbounded is more than there can be.
const unbounded = 1 << 30

type loadAssignment struct {
	ClusterName string              `json:"cluster_name"`
	Endpoints   []localityEndpoints `json:"endpoints"`
}

type localityEndpoints struct {
	Endpoints []lbEndpoint `json:"lb_endpoints"`
}

type lbEndpoint struct {
	Endpoint endpoint `json:"endpoint"`
}

type endpoint struct {
	Address address `json:"address"`
}

type httpProtocolOptions struct {
	Type               string             `json:"@type"`
	ExplicitHTTPConfig explicitHTTPConfig `json:"explicit_http_config"`
}

type explicitHTTPConfig struct {
	HTTP2 http2Options `json:"http2_protocol_options"`
}

type http2Options struct {
	Keepalive keepalive `json:"connection_keepalive"`
}

type keepalive struct {
	Interval string `json:"interval"`
	Timeout  string `json:"timeout"`
}

type clusterManager struct {
	EnableDeferredClusterCreation bool `json:"enable_deferred_cluster_creation"`
}

type statsConfig struct {
	Tags    []fixedTag         `json:"stats_tags"` // labels of all statistics
	Matcher statsMatcher       `json:"stats_matcher"`
	Buckets []histogramBuckets `json:"histogram_bucket_settings"`
}

type histogramBuckets struct {
	Match   stringMatcher `json:"match"`
	Buckets []float64     `json:"buckets"`
}

type statsSink struct {
	Name   string         `json:"name"`
	Config map[string]any `json:"typed_config"`
}

type fixedTag struct {
	Name  string `json:"tag_name"`
	Value string `json:"fixed_value"`
}

type statsMatcher struct {
	InclusionList inclusionList `json:"inclusion_list"`
}

type inclusionList struct {
	Patterns []stringMatcher `json:"patterns"`
}

type stringMatcher struct {
	Prefix string `json:"prefix"`
}

type deferredStatOptions struct {
	EnableDeferredCreationStats bool `json:"enable_deferred_creation_stats"`
}

type overloadManager struct {
	RefreshInterval string            `json:"refresh_interval"`
	Monitors        []resourceMonitor `json:"resource_monitors"`
	Actions         []overloadAction  `json:"actions"`
}

type resourceMonitor struct {
	Name   string        `json:"name"`
	Config monitorConfig `json:"typed_config"`
}

type monitorConfig struct {
	Type    string `json:"@type"`
	Max     uint64 `json:"max_active_downstream_connections,omitempty"`
	MaxHeap uint64 `json:"max_heap_size_bytes,omitempty"`
}

type overloadAction struct {
	Name     string      `json:"name"`
	Triggers []trigger   `json:"triggers"`
	Config   scaleTimers `json:"typed_config"`
}

type trigger struct {
	Name   string `json:"name"`
	Scaled scaled `json:"scaled"`
}

type scaled struct {
	From float64 `json:"scaling_threshold"`
	To   float64 `json:"saturation_threshold"`
}

type scaleTimers struct {
	Type    string        `json:"@type"`
	Factors []timerFactor `json:"timer_scale_factors"`
}

type timerFactor struct {
	Timer string `json:"timer"`
	Min   string `json:"min_timeout"`
}

type layeredRuntime struct {
	Layers []runtimeLayer `json:"layers"`
}

type runtimeLayer struct {
	Name   string         `json:"name"`
	Static map[string]any `json:"static_layer"`
}
