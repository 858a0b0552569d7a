package envoy

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What Envoy calls things is made here, and nowhere read back. Whoever wants to know
// what a name in an answer of Envoy's stands for looks it up among those that were made.

// ClusterName is what Envoy calls the cluster of a backend, and its endpoints. It is
// the same in every process, so that a restart renames nothing.
func ClusterName(k ir.BackendKey) string { return k.String() }

// SecretName is what Envoy calls a secret, likewise.
func SecretName(k ir.SecretKey) string { return k.String() }

// statName is what the statistics of a cluster call it where that isn't its name: they are
// told apart at dots. It is empty for the name itself.
func statName(name string) string {
	if !strings.Contains(name, ".") {
		return ""
	}
	return strings.ReplaceAll(name, ".", "_")
}
