package translate

import (
	"cmp"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// RouteTable decides which route table serves the requests of a listener. It is the only
// place that does. Plain HTTP learns the host from the request, so that all listeners
// of a port share a table. HTTPS has chosen the listener before there is a request, so
// that each hostname has a table to itself. It reports false for protocols without
// requests, which have none.
func RouteTable(gateway object.Name, f topology.Frontend) (ir.TableKey, bool) {
	port := strconv.Itoa(int(f.Port))
	switch f.Protocol {
	case gwv1.HTTPProtocolType:
		return ir.TableOf(gateway, "http-"+port), true
	case gwv1.HTTPSProtocolType:
		// Envoy finds the name of a table in the names of its statistics only where that
		// is of letters, digits, dots, dashes and underscores; no hostname has one of these.
		host := strings.Replace(cmp.Or(f.Hostname, "*"), "*", "_", 1)
		return ir.TableOf(gateway, "tls-"+port+"-"+host), true
	default:
		return ir.TableKey{}, false
	}
}
