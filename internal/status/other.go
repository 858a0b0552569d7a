package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// Other is the status of an object of a kind that nothing else depends on; nil where the
// kind has none, or one in which each entry is about something else.
func Other(s *kind.Status, o metav1.Object) any {
	if s == nil || s.IsShared() {
		return nil
	}
	return s.Saying(observed(o, condition.Valid()))
}
