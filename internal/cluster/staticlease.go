package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseTimeout is how long a process that ends waits for its Lease to go.
const leaseTimeout = 3 * time.Second

// removeLease deletes the Lease of a process that ends, if nobody else holds it: each
// Gateway has one, and nobody else would, when the Gateway is gone.
func (c *Cluster) removeLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	name := c.config.LeaderElection.Name
	leases := c.set.CoordinationV1().Leases(c.opts.Self.Namespace)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
		err = leases.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.log.Warn("the Lease is left behind", "lease", name, "error", err)
	}
}
