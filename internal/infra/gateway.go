package infra

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Gateway is all that a Gateway's fleet is made from. Values are immutable.
type Gateway struct {
	Name  object.Name `json:"name"`
	UID   types.UID   `json:"uid,omitempty"`
	Class string      `json:"class"`
	// Labels and Annotations are those of spec.infrastructure.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Ports are what clients connect to, sorted; a Gateway without any has no fleet.
	Ports []Port `json:"ports,omitempty"`
	// Addresses are the IP addresses that a load balancer may be asked for, of which it
	// is asked for the first. ExternalIPs are those that the Service may have by itself,
	// and has but for that one.
	Addresses   []string `json:"addresses,omitempty"`
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// Internal says that the Gateway is not to be reached from outside of the cluster.
	Internal bool `json:"internal,omitempty"`
	// Settings are the parameters of the Gateway and its class, merged; nil for the
	// default of everything.
	Settings *v1alpha1.Settings `json:"settings,omitempty"`
	// Limits says that requests are counted for all proxies together.
	Limits bool `json:"limits,omitempty"`
	// Promote is the revision that clients are to be led to; see PromoteAnnotation.
	Promote string `json:"promote,omitempty"`
	// Refusing says for each revision whose proxies refuse a part of the configuration what they say of it; of proxies
	// without a revision, under the empty name. Only where revisions stand beside each other.
	Refusing map[string]string `json:"refusing,omitempty"`
	// Frozen says that the fleet stays as it is, whether there is one or not, because
	// what it should be is not known at present.
	Frozen bool `json:"frozen,omitempty"`
}

// Asked is what of a fleet follows from the configuration of its proxies, and from what they say of it. Who makes fleets
// and not configuration is told of it.
type Asked struct {
	Frozen   bool              `json:"frozen,omitempty"`
	Ports    []Port            `json:"ports,omitempty"`
	Limits   bool              `json:"limits,omitempty"`
	Refusing map[string]string `json:"refusing,omitempty"`
}

// Asked returns that of a Gateway's fleet.
func (g *Gateway) Asked() Asked { return Asked{g.Frozen, g.Ports, g.Limits, g.Refusing} }

// Port is a port of the Service in front of a fleet.
type Port struct {
	Port   uint16 `json:"port"`
	Target uint16 `json:"target"` // where the proxies listen
	UDP    bool   `json:"udp,omitempty"`
}
