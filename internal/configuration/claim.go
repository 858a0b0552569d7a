package configuration

import (
	"crypto/sha256"
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimNamespace is where the Leases of controllerNames are. The API server makes it, and
// nobody can delete it.
const ClaimNamespace = metav1.NamespaceDefault

// ClaimName is the name of the Lease of a controllerName, which isn't a name itself.
func ClaimName(controllerName string) string {
	sum := sha256.Sum256([]byte(controllerName))
	return "gatehouse-" + hex.EncodeToString(sum[:])[:16]
}

// ClaimHolder is what an installation signs that Lease with: the namespace of its
// controllers, and the Lease of their leader election.
func ClaimHolder(namespace, lease string) string { return namespace + "/" + lease }
