package conformance

import (
	"sigs.k8s.io/gateway-api/conformance/utils/flags"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// mode is a way in which Gatehouse runs, and what of it is tested.
type mode struct {
	class    string
	profiles []suite.ConformanceProfileName
	// features are what is tested beside the core of the profiles; none for all that
	// the class says it supports.
	features []features.FeatureName
	// manifest is what is installed, and accounts are what has rights in it.
	manifest string
	accounts []account
	// rare are the resources that the mode's tests need not use, and what uses them.
	rare map[string]string
}

// gateways are all profiles that are about gateways.
var gateways = []suite.ConformanceProfileName{
	suite.GatewayHTTPConformanceProfileName,
	suite.GatewayGRPCConformanceProfileName,
	suite.GatewayTLSConformanceProfileName,
	suite.GatewayTCPConformanceProfileName,
	suite.GatewayUDPConformanceProfileName,
}

// modes are by what -mode and reports call them.
var modes = map[string]mode{
	flags.DefaultMode: {
		class: "gatehouse", profiles: gateways,
		manifest: "../../config/install.yaml",
		accounts: []account{{"gatehouse-system", "gatehouse"}},
	},
	"apart": {
		class: "gatehouse", profiles: gateways,
		manifest: "../../bin/install.yaml", // as run has rendered it
		accounts: []account{{"gatehouse-system", "gatehouse"}, {"gatehouse-system", "gatehouse-infrastructure"}},
	},
	"static-mode": {
		class:    "gatehouse-static",
		profiles: []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName},
		features: []features.FeatureName{features.SupportGateway}, // core itself
		manifest: "../../config/provisioner.yaml",
		accounts: []account{{"gatehouse-provisioner", "gatehouse-provisioner"}, {"gatehouse-provisioner", "gatehouse-static"}},
		rare: map[string]string{
			"backendtlspolicies/status": "core has none",
			"configmaps":                "core has none that are referred to",
			"grpcroutes/status":         "GRPC is not tested",
			"listenersets/status":       "core has none",
			"tcproutes/status":          "TCP is not tested",
			"tlsroutes/status":          "TLS is not tested",
			"udproutes/status":          "UDP is not tested",
			"authpolicies":              "the manifest doesn't define them",
			"gatewayblueprints":         "the manifest doesn't define them",
			"gatewayclassvalues":        "the manifest doesn't define them",
			"gatewayparameters":         "the manifest doesn't define them",
			"gatewayvalues":             "the manifest doesn't define them",
			"ratelimitpolicies":         "the manifest doesn't define them",
			"routefilters":              "the manifest doesn't define them",
			"inferencepools":            "the cluster doesn't define them",
			"inferencepools/status":     "the cluster doesn't define them",
			"pods":                      "they are read for InferencePools alone",
			"serviceimports":            "the cluster doesn't define them",
			"trafficpolicies":           "the manifest doesn't define them",
		},
	},
}

// names returns what a mode's report must have.
func (m mode) names() map[string]bool {
	out := map[string]bool{}
	for _, name := range m.profiles {
		out[string(name)] = true
	}
	return out
}
