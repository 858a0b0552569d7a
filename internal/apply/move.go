package apply

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// A Gateway that gets another class of ours, or whose fleet is to be in another namespace, moves from one fleet
// to another, which has another Service with other addresses. The former fleet serves on as it is until
//
//  1. the new proxies are ready and their Service has an address,
//  2. the Gateway's status names that address, and no more the former ones.
//
// Then its proxies drain. Its Service goes when the last of them has ended, so that
// whoever still uses the former address is served by them.

// member is an object of a fleet.
type member struct {
	kind
	client.Object
}

// move is the move of a Gateway from fleets of other classes, or in other namespaces, to that of its own.
type move struct {
	former []member // objects of the fleets that it comes from
	// serving is the Service that clients are to use: one of those fleets that works,
	// until the Gateway's own can take over.
	serving object.Name
	// leaves are the addresses that only the former fleets have.
	leaves map[string]bool
	// arrived says that the Gateway's own fleet works and has an address.
	arrived bool
	// handover says that the new fleet works, and asks for an address that the former
	// fleet has to give up first.
	handover bool
}

// moving finds the objects of a Gateway's move; nil where it doesn't move.
func (f *Fleets) moving(ctx context.Context, c cache.Cache, g *infra.Gateway) (*move, error) {
	m := &move{serving: f.options.Places.Name(g.Name, g.Class), leaves: map[string]bool{}}
	own := map[string]client.Object{} // workloads of the Gateway's own fleet, by their names
	services, workloads := map[object.Name]*corev1.Service{}, map[object.Name]client.Object{}
	for _, k := range kinds {
		live, err := children(ctx, c, k, g.Name)
		if err != nil {
			return nil, err
		}
		for _, o := range live {
			if _, ours := f.options.Places.OfFleet(o, f.options.ControllerName); !ours && !f.isRevision(o) {
				continue
			}
			fleet := infra.FleetOf(o, g.Name)
			if fleet != m.serving {
				m.former = append(m.former, member{k, o})
			}
			if o.GetDeletionTimestamp() != nil {
				continue
			}
			switch o := o.(type) {
			case *corev1.Service:
				if o.Name == fleet.Name {
					services[fleet] = o
				}
			case *appsv1.Deployment, *appsv1.DaemonSet:
				if w := own[o.GetName()]; fleet == m.serving && (w == nil || !ready(w)) {
					own[o.GetName()] = o
				}
				if w := workloads[fleet]; w == nil || !ready(w) {
					workloads[fleet] = o
				}
			}
		}
	}
	if len(m.former) == 0 {
		return nil, nil
	}
	service := services[m.serving]
	var workload client.Object
	if service != nil {
		workload = own[infra.LiveOf(service)]
	}
	delete(services, m.serving)
	for _, s := range services {
		for _, address := range allAddresses(s) {
			m.leaves[address] = true
		}
	}
	if service != nil && workload != nil && ready(workload) {
		m.arrived = addressed(service)
		m.handover = !m.arrived && f.handsOver(g, m, service)
		for _, address := range allAddresses(service) {
			delete(m.leaves, address)
		}
	}
	if m.arrived || m.handover {
		return m, nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(services), object.Name.Compare) {
		if w := workloads[name]; w != nil && serves(w) && addressed(services[name]) {
			m.serving = name
			break
		}
	}
	return m, nil
}

// isRevision reports whether an object is of one revision of a fleet of ours.
func (f *Fleets) isRevision(o client.Object) bool {
	return f.options.Places.OfRevision(o) && o.GetAnnotations()[infra.ControllerAnnotation] == f.options.ControllerName
}

// handsOver reports whether a Service without an address asks for one that a former
// fleet has, and has waited for it.
func (f *Fleets) handsOver(g *infra.Gateway, m *move, service *corev1.Service) bool {
	if !slices.ContainsFunc(slices.Concat(g.Addresses, g.ExternalIPs), func(ip string) bool { return m.leaves[ip] }) {
		return false
	}
	left := f.handoverPatience - time.Since(service.CreationTimestamp.Time)
	if left > 0 {
		f.queue.AddAfter(g.Name, left)
	}
	return left <= 0
}

func allAddresses(s *corev1.Service) []string {
	addresses, cluster := infra.Addresses(s)
	return slices.Concat(addresses, cluster)
}

// handoverPatience is how long a load balancer may take to give an address to a second
// Service while the first one still has it. Most never do.
const handoverPatience = 30 * time.Second

// serves reports whether a workload has a proxy that is ready.
func serves(workload client.Object) bool {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return w.Status.AvailableReplicas > 0
	case *appsv1.DaemonSet:
		return w.Status.NumberReady > 0
	default:
		return false
	}
}

// leave ends the former fleets of a Gateway that has arrived, step by step.
func (f *Fleets) leave(ctx context.Context, g *infra.Gateway, m *move) error {
	told, err := f.isTold(ctx, g, m)
	if err != nil {
		return err
	}
	if !told {
		f.queue.AddAfter(g.Name, statusPoll)
		return nil
	}
	drained := !f.hasPods(g, m)
	for _, o := range m.former {
		switch o.name {
		case "Service":
			if !drained && !m.handover {
				continue
			}
		case "ConfigMap", "ServiceAccount": // proxies need them as long as they run
			if !drained {
				continue
			}
		}
		if err := f.discard(ctx, o.kind, o.Object); err != nil {
			return err
		}
	}
	return nil
}

// statusPoll is how often a Gateway's status is looked at for whether it tells of a
// move.
const statusPoll = time.Second

// isTold reports whether a Gateway's status has nothing more of the addresses that
// only its former fleets have.
func (f *Fleets) isTold(ctx context.Context, g *infra.Gateway, m *move) (bool, error) {
	live, err := f.readGateway(ctx, g.Name)
	if apierrors.IsNotFound(err) { // it is in a file, and has no status
		return true, nil
	}
	if err != nil {
		return false, err
	}
	list, _, _ := unstructured.NestedSlice(live.Object, "status", "addresses")
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		if value, _ := fields["value"].(string); m.leaves[value] {
			return false, nil
		}
	}
	return true, nil
}

// hasPods reports whether proxies of a Gateway's former fleets are there still. Where
// pods can't be watched, there seem to be none.
func (f *Fleets) hasPods(g *infra.Gateway, m *move) bool {
	names := map[object.Name]bool{}
	for _, o := range m.former {
		names[nameOf(o)] = true
		if s, ok := o.Object.(*corev1.Service); ok { // its Deployment is gone before the pods are
			names[object.Name{Namespace: s.Namespace, Name: infra.LiveOf(s)}] = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pod := range f.pods[g.Name] {
		if names[instanceOf(pod)] {
			return true
		}
	}
	return false
}

// addressed reports whether a Service has an address, and the one that its load
// balancer was asked for if there is one.
func addressed(s *corev1.Service) bool {
	if s.Spec.LoadBalancerIP != "" {
		return len(s.Status.LoadBalancer.Ingress) > 0
	}
	addresses, _ := infra.Addresses(s)
	return len(addresses) > 0
}
