package v1alpha1

// Strategy is what becomes of a policy where others have more specific targets, or the same
// target and are younger (GEP-713). Of defaults those others have the last word, of
// overrides the policy itself.
// +kubebuilder:validation:Enum=atomic;merge
type Strategy string

// The strategies.
const (
	// Atomic policies are in force as a whole or not at all.
	Atomic Strategy = "atomic"
	// Merge has rules of different names in force together.
	Merge Strategy = "merge"
)
