package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
)

// claim is a Lease for a controllerName, which one installation of a cluster holds. It is
// in a namespace that all of them know. Only the leader of an installation renews it, and
// all its replicas sign it with the same name: whichever leads next goes on with it at
// once. Nobody releases it at the end of a replica, so that a restart or an upgrade loses
// nothing; another installation takes it when it has seen it stand still for
// takeOverAfter, by its own clock. Of an installation whose roles are apart, those with
// the role Configuration renew it, and the others write unless it is another installation's.
type claim struct {
	name string // of the Lease
	self string // of the installation: its Lease of leader election
	pod  *corev1.ObjectReference
	set  kubernetes.Interface
	le   configuration.LeaderElection
	only bool // this process only looks who holds it
	log  *slog.Logger

	controllerName string
	other          atomic.Pointer[string] // who holds it; nil if nobody, or we
}

func newClaim(c *configuration.Configuration, self Replica, set kubernetes.Interface, log *slog.Logger) *claim {
	return &claim{
		name: configuration.ClaimName(c.ControllerName), self: configuration.ClaimHolder(self.Namespace, c.LeaderElection.Name), set: set, le: c.LeaderElection, log: log,
		only:           !c.Has(configuration.RoleConfiguration),
		pod:            &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: self.Namespace, Name: self.Name},
		controllerName: c.ControllerName,
	}
}

// whileOurs waits until the controllerName is this installation's, then calls serve with a
// context that ends when it may be another's. Only a leader calls it.
func (c *claim) whileOurs(ctx context.Context, serve func(context.Context) error) error {
	if c == nil {
		return serve(ctx)
	}
	if _, err := c.holder(ctx); apierrors.IsForbidden(err) { // its roles are older than it is; watch says so
		return serve(ctx)
	}
	if c.only {
		return c.unlessTaken(ctx, serve)
	}
	takeOver := c.le.TakeOverAfter.Duration
	lock := newLease(&resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: configuration.ClaimNamespace, Name: c.name},
		Client:    c.set.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: c.self},
	}, takeOver/2)
	config := leaderelection.LeaderElectionConfig{
		Lock: lock, Name: c.name, LeaseDuration: takeOver, RenewDeadline: takeOver / 2, RetryPeriod: c.le.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}
	if _, err := leaderelection.NewLeaderElector(config); err != nil {
		return fmt.Errorf("claim of controllerName %s: %w", c.controllerName, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		for ctx.Err() == nil {
			if elector, err := leaderelection.NewLeaderElector(config); err == nil {
				elector.Run(ctx)
			}
		}
	})
	held, end, err := lock.ours(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended, which is no problem of the claim
	}
	defer end()
	if err := serve(held); held.Err() == nil {
		return err
	}
	return nil
}

// unlessTaken calls serve while the controllerName is not another installation's, with a context that ends
// when it is.
func (c *claim) unlessTaken(ctx context.Context, serve func(context.Context) error) error {
	tick := time.NewTicker(c.le.RetryPeriod.Duration)
	defer tick.Stop()
	look := func(ctx context.Context, until func(holder string) bool) {
		for ctx.Err() == nil {
			if holder, err := c.holder(ctx); err == nil && until(holder) {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	others := func(holder string) bool { return holder != "" && holder != c.self }
	look(ctx, func(holder string) bool { return !others(holder) })
	if ctx.Err() != nil {
		return nil
	}
	held, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	group.Go(func() {
		look(held, others)
		end()
	})
	if err := serve(held); held.Err() == nil {
		return err
	}
	return nil
}

// watch looks who holds the claim, until ctx ends, and tells of others. Every replica does.
func (c *claim) watch(ctx context.Context, recorder events.EventRecorder) error {
	tick := time.NewTicker(c.le.LeaseDuration.Duration / 3)
	defer tick.Stop()
	failed := false
	for {
		holder, err := c.holder(ctx)
		switch was := c.heldBy(); {
		case err != nil:
			if !failed && ctx.Err() == nil {
				text := "the Lease of the controllerName can't be read; nothing is written until it can"
				if apierrors.IsForbidden(err) {
					text = "no right to the Lease of the controllerName: another installation of that name would not be seen, and write the same; apply the roles of this version"
				}
				c.log.Error(text, "lease", configuration.ClaimNamespace+"/"+c.name, "error", err)
			}
		case holder == c.self || holder == "":
			if c.other.Store(nil); was != "" {
				c.log.Info("the controllerName is free, or this installation's: it stands back no longer", "controllerName", c.controllerName)
			}
		case holder != was:
			c.other.Store(&holder)
			c.log.Warn("standing back: nothing is written, since another installation has the controllerName",
				"controllerName", c.controllerName, "installation", holder, "lease", configuration.ClaimNamespace+"/"+c.name)
			recorder.Eventf(c.pod, nil, corev1.EventTypeWarning, "ControllerNameTaken", "StandBack", "%s", c.standsBack(holder))
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// holder is who has signed the Lease last; empty for nobody.
func (c *claim) holder(ctx context.Context) (string, error) {
	lease, err := c.set.CoordinationV1().Leases(configuration.ClaimNamespace).Get(ctx, c.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case lease.Spec.HolderIdentity == nil:
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}

// heldBy is the other installation that has the controllerName; empty for none.
func (c *claim) heldBy() string {
	if c == nil {
		return ""
	}
	if other := c.other.Load(); other != nil {
		return *other
	}
	return ""
}

// standsBack says why an installation does.
func (c *claim) standsBack(other string) string {
	return fmt.Sprintf("another installation, whose Lease is %s, has controllerName %s, so this one writes nothing; give this one a controllerName and a GatewayClass of its own, or uninstall one of the two: this one takes over when the other has been silent for %s",
		other, c.controllerName, c.le.TakeOverAfter.Duration)
}
