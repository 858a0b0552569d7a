package xds

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

// A state that equals the last one is not told.
func TestStatesCompareEachField(t *testing.T) {
	equaltest.Fields(t, &State{}, (*State).equal)
}
