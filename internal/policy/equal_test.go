package policy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

// text is what a policy asks for.
type text string

func (a text) Equal(b text) bool { return a == b }

func TestEqualComparesEachField(t *testing.T) {
	equaltest.Fields(t, &Node[text]{}, (*Node[text]).Equal)
	equaltest.Fields(t, &Attached[text]{}, (*Attached[text]).Equal)
	equaltest.Fields(t, &Effective[text]{}, (*Effective[text]).Equal)
	equaltest.Fields(t, &Placed[text]{}, func(a, b *Placed[text]) bool { return a.Equal(*b) })
}
