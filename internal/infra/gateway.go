package infra

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Gateway is what a Gateway's fleet follows from.
type Gateway struct {
	Name  ir.Name
	UID   types.UID
	Class string
	// Labels and Annotations are those of spec.infrastructure.
	Labels, Annotations map[string]string
	// Ports are what clients connect to, sorted; a Gateway without any has no fleet.
	Ports []Port
	// Addresses are the IP addresses that the Gateway asks for.
	Addresses []string
}

// Port is a port of the Service in front of a fleet.
type Port struct {
	Port   uint16 `json:"port"`
	Target uint16 `json:"target"` // where the proxies listen
	UDP    bool   `json:"udp,omitempty"`
}
