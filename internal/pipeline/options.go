package pipeline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ControllerName is the controllerName of the GatewayClasses that are ours, unless the
// configuration says otherwise.
const ControllerName = "gatehouse.dev/controller"

// StandaloneClass is the class that works in standalone mode without an object.
const StandaloneClass = "gatehouse"

// Options are what a mode decides about a pipeline.
type Options struct {
	// ControllerNamespace is where the platform says what is in force for whole classes; empty
	// where there is no such place.
	ControllerNamespace string
	Topology            topology.Options
	// Kinds are those of the objects that have a table; nil is kind.All.
	Kinds *kind.Table
	// ConfigMaps, if not nil, are those that somebody makes objects of, beside an object without a table of its own.
	ConfigMaps func(source.Object) []object.Name
	// Addresses are bound where a Gateway asks for none of its own.
	Addresses []string
	// Mode is who runs the proxies, and where.
	Mode features.Mode
	// Places are where fleets are.
	Places infra.Places
	// FleetsAlone says that fleets are made, and that somebody else makes the configuration of their proxies: what that asks
	// of fleets comes by SetAsked.
	FleetsAlone bool
	// NoProxies says that none has anything of an earlier configuration, which it could still use.
	NoProxies bool
}

// Provisioned returns the options where proxies run in pods behind a Service. reads
// says of a namespace whether its objects are read; nil where all are.
func Provisioned(controllerName, systemAuthorities string, reads func(*corev1.Namespace) bool) Options {
	return Options{
		Addresses: []string{"0.0.0.0"}, Mode: features.Fleets,
		Topology: topology.Options{
			ControllerName:    controllerName,
			Reads:             reads,
			Provisioned:       true,
			Unprivileged:      true,
			SystemAuthorities: systemAuthorities,
			Settings:          parameters.Provisioned(),
		},
	}
}

// Local returns the options where proxies run on this host, for the Gateways of a
// cluster or of files. settings are those of Gateways whose parameters say nothing.
func Local(controllerName, systemAuthorities string, addresses []string, settings *v1alpha1.Settings) Options {
	return Options{
		Addresses: addresses,
		Topology: topology.Options{
			ControllerName:    controllerName,
			DefaultAddresses:  addresses,
			SystemAuthorities: systemAuthorities,
			Settings:          settings,
		},
	}
}
