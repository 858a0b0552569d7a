package writer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// generationOf returns the generation of the object that a status was computed from;
// 0 for a status that doesn't say.
func generationOf(s *kind.Status, status any) int64 {
	var out int64
	for _, list := range s.Conditions(status) {
		for i := range list {
			out = max(out, list[i].ObservedGeneration)
		}
	}
	return out
}

// wholeOf returns the conditions of a whole status that are about its object as a whole.
func wholeOf(s *kind.Status, status any) []metav1.Condition {
	for place, list := range s.Conditions(status) {
		if place == "" {
			return list
		}
	}
	return nil
}
