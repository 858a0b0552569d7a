package policy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

func TestEqualComparesEachField(t *testing.T) {
	equaltest.Fields(t, &Node[string]{}, (*Node[string]).Equal)
	equaltest.Fields(t, &Attached[string]{}, (*Attached[string]).Equal)
}
