package apply

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// pair is what of a fleet serves, and what is to. All of it is read from the cluster each time, so that
// another controller goes on where one has ended.
type pair struct {
	plan infra.Plan
	// live serves; nil where nothing does yet. next is what there is of what the parameters ask for.
	live, next client.Object
	name       string // of next, where that is not there too
	revision   string
	wanted     int32  // proxies of next, beside live
	replicas   *int32 // that are asked for; nil where others decide on that
	// refuses is what proxies of next refuse of the configuration, and those of live don't.
	refuses string
	// compared says that next is ready to be compared with live.
	compared bool
}

// beside reports whether something serves that is to be replaced.
func (p *pair) beside() bool { return p.live != nil && p.live.GetName() != p.name }

// pair finds what of a fleet serves.
func (f *Fleets) pair(ctx context.Context, c cache.Cache, g *infra.Gateway, fleet *infra.Fleet) (*pair, error) {
	out := &pair{revision: fleet.Revision}
	var err error
	if out.live, err = f.live(ctx, c, g); err != nil {
		return nil, err
	}
	if out.live != nil {
		out.plan.Live = infra.Live{Workload: out.live.GetName(), Revision: out.live.GetLabels()[infra.RevisionLabel]}
	}
	out.name = fleet.Workload(out.plan.Live)
	if out.next, err = f.workloadNamed(ctx, c, g, out.name); err != nil {
		return nil, err
	}
	if !out.beside() {
		return out, nil
	}
	if !g.Autoscaled() {
		out.replicas = fleet.Replicas()
	} else {
		scaler, err := cached(ctx, c, &autoscalingv2.HorizontalPodAutoscaler{
			TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
			ObjectMeta: f.metaOf(g),
		})
		if err != nil {
			return nil, err
		}
		out.plan.Unscaled = scaler == nil
	}
	out.wanted = ptr.Deref(out.replicas, 1)
	if d, ok := out.live.(*appsv1.Deployment); ok && out.replicas == nil {
		out.wanted = ptr.Deref(d.Spec.Replicas, 1)
	}
	if next, live := infra.RevisionIn(out.name), infra.RevisionIn(out.live.GetName()); next != live && g.Refusing[live] == "" {
		out.refuses = g.Refusing[next]
	}
	is, _ := verdict(out.next)
	promote := g.Promote == fleet.Revision || !g.BlueGreen() || g.Automatic() && is == figures.NoWorse
	if !promote && g.Automatic() {
		out.wanted = 1 // is compared with the others
		if is == figures.Worse {
			out.wanted = 0 // so that connections to it end as well
		}
	}
	out.plan.Replicas = new(out.wanted)
	complete := out.isComplete()
	out.plan.Promote = complete && promote
	out.compared = complete && !promote && g.Automatic() && is == ""
	out.plan.Shared = out.compared && out.refuses == ""
	return out, nil
}

// isComplete reports whether next runs the revision with all proxies that it is to have.
func (p *pair) isComplete() bool {
	if d, ok := p.next.(*appsv1.Deployment); ok && (d.Labels[infra.RevisionLabel] != p.revision || ptr.Deref(d.Spec.Replicas, 1) < p.wanted) {
		return false
	}
	return p.next != nil && ready(p.next)
}

// metaOf names the objects of a Gateway's fleet.
func (f *Fleets) metaOf(g *infra.Gateway) metav1.ObjectMeta {
	name := f.options.Places.Name(g.Name, g.Class)
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}

// live is the workload that clients are led to; nil where nothing serves yet.
func (f *Fleets) live(ctx context.Context, c cache.Cache, g *infra.Gateway) (client.Object, error) {
	own := f.metaOf(g)
	service, err := cached(ctx, c, &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: own})
	if err != nil {
		return nil, err
	}
	if s, ok := service.(*corev1.Service); ok {
		if found, err := f.workloadNamed(ctx, c, g, infra.LiveOf(s)); found != nil || err != nil {
			return found, err
		}
	}
	// Somebody has deleted it, or what it led to. What was there first has served.
	var oldest client.Object
	for _, k := range kinds {
		if k.name != "Deployment" && k.name != "DaemonSet" {
			continue
		}
		all, err := children(ctx, c, k, g.Name)
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if !f.runsProxies(o, g) || o.GetName() != own.Name && !f.options.Places.OfRevision(o) {
				continue
			}
			if oldest == nil || earlier(o, oldest) {
				oldest = o
			}
		}
	}
	return oldest, nil
}

// earlier reports whether one workload was made before another; of two in the same second, whether it serves.
func earlier(a, b client.Object) bool {
	at, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return at.Before(&other) || at.Equal(&other) && serves(a)
}

// runsProxies reports whether a live workload is of a Gateway's fleet, and stays.
func (f *Fleets) runsProxies(o client.Object, g *infra.Gateway) bool {
	gateway, ok := f.options.Places.GatewayOf(o)
	return ok && gateway == g.Name && o.GetNamespace() == f.options.Places.Of(gateway) && infra.ClassOf(o) == g.Class && o.GetAnnotations()[infra.ControllerAnnotation] == f.options.ControllerName &&
		!infra.CountsFor(o, gateway) && o.GetDeletionTimestamp() == nil
}

// workloadNamed returns what runs proxies of a fleet under a name; nil if nothing does. It may be a DaemonSet still where
// there is to be a Deployment, and the other way round.
func (f *Fleets) workloadNamed(ctx context.Context, c cache.Cache, g *infra.Gateway, name string) (client.Object, error) {
	var found client.Object
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		o, err := cached(ctx, c, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: f.options.Places.Of(g.Name), Name: name},
		})
		if err != nil {
			return nil, err
		}
		if o != nil && f.runsProxies(o, g) && (found == nil || !serves(found)) {
			found = o
		}
	}
	return found, nil
}

// scale gives proxies that serve beside others the number that the parameters ask for. All else of
// them stays.
func (f *Fleets) scale(ctx context.Context, p *pair) error {
	live, ok := p.live.(*appsv1.Deployment)
	if !ok || !p.beside() || p.replicas == nil || ptr.Deref(live.Spec.Replicas, 1) == *p.replicas {
		return nil
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": *p.replicas}})
	if err != nil {
		return err
	}
	err = f.client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, text), client.FieldOwner(infra.ManagedBy))
	f.count("Deployment", "apply", err)
	return err
}

// step says where another revision is; zero where there is no strategy BlueGreen.
func (f *Fleets) step(g *infra.Gateway, p *pair) infra.Step {
	if !g.BlueGreen() {
		return infra.Step{}
	}
	out := infra.Step{Stage: infra.Progressing, Revision: p.revision, Workload: p.name}
	is, figured := verdict(p.next)
	next, _ := p.next.(*appsv1.Deployment)
	if next != nil {
		out.Ready, out.Wanted = next.Status.AvailableReplicas, ptr.Deref(next.Spec.Replicas, 1)
	}
	if !p.beside() {
		if next != nil && (serves(next) || out.Wanted == 0) {
			return infra.Step{Stage: infra.Promoted, Revision: p.revision, Workload: p.name, Why: figured}
		}
		if next != nil {
			out.Why = f.rollout(g.Name, next).Why
		}
		return out
	}
	out.Live, out.Preview = p.live.GetName(), f.options.Places.PreviewName(g.Name, g.Class).Name
	if g.Promote != p.revision && g.Promote != p.plan.Live.Revision {
		out.Promote = g.Promote
	}
	switch {
	case next == nil:
	case is == figures.Worse && g.Promote != p.revision:
		out.Stage, out.Why = infra.Worse, figured
	case p.compared:
		out.Stage, out.Why = infra.Comparing, f.comparing(g.Name)
	case p.plan.Promote: // until the Service is seen to lead there
	case p.isComplete():
		out.Stage, out.Why = infra.Awaiting, p.refuses
	default:
		out.Why = f.rollout(g.Name, next).Why
	}
	return out
}
