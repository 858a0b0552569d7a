package pipeline

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

// What equals the last of its kind is not sent.
func TestEqualComparesEachField(t *testing.T) {
	// Resources are compared by what their hashes follow from, see package envoy.
	equaltest.Fields(t, Member{}, Member.Equal,
		equaltest.Other("Cluster", envoy.NewResource(envoy.Clusters, "a", nil)),
		equaltest.Other("Endpoints", envoy.NewResource(envoy.Endpoints, "a", nil)))
	// A part with errors equals none but itself.
	equaltest.Fields(t, hostPart{}, hostPart.Equal, equaltest.NotNil("part"),
		equaltest.Ignored("part.Body", "part.Guard", "part.headers", "part.nobody"), equaltest.Other("errors", &[]envoy.RuleError{{}}))
}
