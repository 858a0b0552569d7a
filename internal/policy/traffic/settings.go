package traffic

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// settings are all that a policy can say, sorted by name.
var settings = []setting{
	row("backend.circuitBreaker", func(s *v1alpha1.TrafficSettings) *v1alpha1.CircuitBreaker { return s.Backend.CircuitBreaker }, (*reader).circuitBreaker),
	row("backend.clusters", func(s *v1alpha1.TrafficSettings) *v1alpha1.BackendClusters { return s.Backend.Clusters }, (*reader).clusters),
	row("backend.connectTimeout", func(s *v1alpha1.TrafficSettings) *gwv1.Duration { return s.Backend.ConnectTimeout }, (*reader).connectTimeout),
	row("backend.connections", func(s *v1alpha1.TrafficSettings) *v1alpha1.BackendConnections { return s.Backend.Connections }, (*reader).connections),
	row("backend.healthCheck", func(s *v1alpha1.TrafficSettings) *v1alpha1.HealthCheck { return s.Backend.HealthCheck }, (*reader).healthCheck),
	row("backend.loadBalancing", func(s *v1alpha1.TrafficSettings) *v1alpha1.LoadBalancing { return s.Backend.LoadBalancing }, (*reader).loadBalancing),
	row("backend.outlierDetection", func(s *v1alpha1.TrafficSettings) *v1alpha1.OutlierDetection { return s.Backend.OutlierDetection }, (*reader).outlierDetection),
	row("backend.retryBudget", func(s *v1alpha1.TrafficSettings) *v1alpha1.RetryBudget { return s.Backend.RetryBudget }, (*reader).retryBudget),
	row("backend.routingType", func(s *v1alpha1.TrafficSettings) *v1alpha1.RoutingType { return s.Backend.RoutingType }, (*reader).routingType),
	row("request.admissionControl", func(s *v1alpha1.TrafficSettings) *v1alpha1.AdmissionControl { return s.Request.AdmissionControl }, (*reader).admissionControl),
	row("request.bandwidth", func(s *v1alpha1.TrafficSettings) *size { return s.Request.Bandwidth }, (*reader).requestBandwidth),
	row("request.buffering", func(s *v1alpha1.TrafficSettings) *v1alpha1.Buffering { return s.Request.Buffering }, (*reader).buffering),
	row("request.faults", func(s *v1alpha1.TrafficSettings) *v1alpha1.Faults { return s.Request.Faults }, (*reader).faults),
	row("request.idleTimeout", func(s *v1alpha1.TrafficSettings) *gwv1.Duration { return s.Request.IdleTimeout }, (*reader).idleTimeout),
	row("request.maxBodySize", func(s *v1alpha1.TrafficSettings) *size { return s.Request.MaxBodySize }, (*reader).maxBodySize),
	row("request.retry", func(s *v1alpha1.TrafficSettings) *v1alpha1.TrafficRetry { return s.Request.Retry }, (*reader).retry),
	row("request.timeout", func(s *v1alpha1.TrafficSettings) *gwv1.Duration { return s.Request.Timeout }, (*reader).timeout),
	row("response.bandwidth", func(s *v1alpha1.TrafficSettings) *size { return s.Response.Bandwidth }, (*reader).responseBandwidth),
	row("response.compression", func(s *v1alpha1.TrafficSettings) *v1alpha1.Compression { return s.Response.Compression }, (*reader).compression),
	row("response.errorPages", func(s *v1alpha1.TrafficSettings) *v1alpha1.ErrorPages { return s.Response.ErrorPages }, (*reader).errorPages),
	row("response.headers", func(s *v1alpha1.TrafficSettings) *v1alpha1.AnswerHeaders { return s.Response.Headers }, (*reader).headers),
	row("response.securityHeaders", func(s *v1alpha1.TrafficSettings) *v1alpha1.SecurityHeaders { return s.Response.SecurityHeaders }, (*reader).securityHeaders),
	row("response.strictTransportSecurity", func(s *v1alpha1.TrafficSettings) *v1alpha1.StrictTransportSecurity {
		return s.Response.StrictTransportSecurity
	}, (*reader).strictTransportSecurity),
}

// setting is one thing that a policy can say.
type setting struct {
	name string // its field, by which policies are merged
	// said returns the field; nil where a policy doesn't have it.
	said func(*v1alpha1.TrafficSettings) any
	// read reads the field, which is there, and notes what is wrong with it.
	read func(*reader, *v1alpha1.TrafficSettings, *ir.Traffic)
}

// row makes a setting of a field, and of how that is read.
func row[T any](name string, field func(*v1alpha1.TrafficSettings) *T, read func(*reader, *T, *ir.Traffic)) setting {
	return setting{
		name: name,
		said: func(s *v1alpha1.TrafficSettings) any {
			if v := field(s); v != nil {
				return v
			}
			return nil
		},
		read: func(r *reader, s *v1alpha1.TrafficSettings, out *ir.Traffic) { read(r, field(s), out) },
	}
}

// Settings are the names of all settings.
func Settings() (names []string) {
	for i := range settings {
		names = append(names, settings[i].name)
	}
	return names
}

// reader reads the settings of a policy.
type reader struct {
	inherited.Reader
	namespace string
	configMap ConfigMaps
	ofService bool // the policy is for a Service
	// lacking are the problems of a setting that is in force all the same, without a part of it.
	lacking []string
}

// ConfigMaps finds what is in a ConfigMap.
type ConfigMaps func(object.Name) (map[string]string, bool)
