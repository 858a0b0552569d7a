package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOneLeader protects objects from two replicas that write at the same time: one that
// can't renew the Lease, while the API server takes everything else from it, stops
// before another begins. That other one begins by itself, and one that ends lets the
// next begin at once.
func TestOneLeader(t *testing.T) {
	in := install(t)
	first := in.start()
	in.until("the first leads", func() bool { return first.leads.Load() != nil })
	second := in.start()
	first.mute.Store(true)
	in.until("the second leads", func() bool {
		two := second.leads.Load() != nil
		if one := first.leads.Load() != nil; one && two { // in this order: the first may have ended meanwhile
			t.Fatal("both lead")
		}
		return two
	})
	first.mute.Store(false)
	third := in.start()
	before := in.holder()
	second.end()
	if now := in.holder(); now == before {
		t.Errorf("%q has ended and keeps the Lease", now)
	}
	in.until("another leads", func() bool { return first.leads.Load() != nil || third.leads.Load() != nil })
}

// holder is who has the Lease of the leader.
func (in *installed) holder() string {
	in.Helper()
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse-leader"}, lease); err != nil {
		in.Fatal(err)
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// TestLeaseCountsFromTheBeginning protects the same from answers that come late.
func TestLeaseCountsFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline = 10 * time.Second
		lock := &slowLock{}
		l := newLease(lock, deadline)
		ours := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}
		renew := func(takes time.Duration) {
			t.Helper()
			lock.takes = takes
			if err := l.Update(t.Context(), ours); err != nil {
				t.Fatal(err)
			}
		}
		renew(4 * time.Second)
		ctx, cancel, err := l.ours(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took != deadline-4*time.Second {
			t.Errorf("a lease that took 4 s to renew is ours for %v after that", took)
		}
		late, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, _, err := l.ours(late); err == nil {
			t.Error("it is ours without being renewed")
		}
		renew(0)
		ctx, cancel, err = l.ours(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer cancel()
		for range 5 {
			time.Sleep(deadline / 2)
			renew(0)
		}
		if ctx.Err() != nil {
			t.Error("a lease that is renewed is lost")
		}
	})
}

// slowLock is a Lease that takes time to write.
type slowLock struct {
	resourcelock.Interface
	takes time.Duration
}

func (l *slowLock) Identity() string { return "replica_192.0.2.1" }

func (l *slowLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.takes)
	return nil
}
