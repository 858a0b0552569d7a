package infra

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// With the strategy BlueGreen, proxies of another revision run in a Deployment of their own, until
// clients are led to them. All that has to be known of that is in the cluster: a Deployment says by
// RevisionLabel what it runs, and the Service by LiveAnnotation which Deployment it leads to.

const (
	// RevisionLabel is on what runs proxies, and on what belongs to one revision of them: the
	// hash of their pod template.
	RevisionLabel = "gatehouse.dev/revision"
	// PromoteAnnotation on a Gateway names the revision that clients are to be led to.
	PromoteAnnotation = "gatehouse.dev/promote"
	// LiveAnnotation is on the Service of a fleet: the name of the workload that it leads to. Without it that
	// is the Service's own name.
	LiveAnnotation = "gatehouse.dev/live"
	// VerdictAnnotation is on the Deployment of a revision: what a comparison has come to, and the figures.
	VerdictAnnotation = "gatehouse.dev/verdict"
)

// reserved are the labels and annotations by which it is known what objects of a fleet are. Who may edit a Gateway or its
// parameters can't set them.
var reserved = []string{RevisionLabel, LiveAnnotation, VerdictAnnotation, PartOfLabel, SetIDLabel, ResourceLabel}

// given are labels or annotations that somebody has given, without those that are reserved.
func given(from map[string]string) map[string]string {
	out := maps.Clone(from)
	maps.DeleteFunc(out, func(k, _ string) bool { return slices.Contains(reserved, k) })
	return out
}

// kept are labels or annotations after a patch, which leaves those that are reserved as they were.
func kept(before, patched map[string]string) map[string]string {
	out := given(patched)
	if out == nil {
		out = map[string]string{}
	}
	for _, k := range reserved {
		if v, ok := before[k]; ok {
			out[k] = v
		}
	}
	return out
}

// Live is what clients are led to; the zero value is nothing.
type Live struct {
	Workload string `json:"workload,omitempty"` // its name
	Revision string `json:"revision,omitempty"`
}

// Plan is what is to be of the revision that the parameters ask for.
type Plan struct {
	Live Live `json:"live,omitzero"`
	// Promote leads clients to the revision.
	Promote bool `json:"promote,omitempty"`
	// Shared leads clients to the revision and to what serves, by the number of their proxies.
	Shared bool `json:"shared,omitempty"`
	// Replicas are how many proxies of it there are to be while others serve; nil for as many as the
	// parameters say.
	Replicas *int32 `json:"replicas,omitempty"`
	// Unscaled leaves out the autoscaler: there is none yet, and pods that serve may not request what it measures by.
	Unscaled bool `json:"unscaled,omitempty"`
}

// Fleet is what the parameters of a Gateway ask for.
type Fleet struct {
	// Revision tells one pod template from another.
	Revision string

	f        *fleet
	workload apiObject
}

// New returns the fleet of a Gateway. The errors are those of parameters that can't be put into
// effect.
func New(o Options, g *Gateway) (*Fleet, error) {
	own := *g
	own.Labels, own.Annotations = given(g.Labels), given(g.Annotations)
	g = &own
	f := &fleet{Gateway: g, options: &o, namespace: o.Places.Of(g.Name), name: o.Places.Name(g.Name, g.Class).Name, settings: g.Settings}
	if f.settings == nil {
		f.settings = &v1alpha1.Settings{}
	}
	if err := checkPatches(f.settings.Patches); err != nil {
		return nil, err
	}
	if f.BlueGreen() && f.settings.DaemonSet != nil {
		return nil, errors.New("rollout.strategy BlueGreen can't be had together with daemonSet; use Rolling")
	}
	workload, err := f.workload()
	if err != nil {
		return nil, err
	}
	if workload, err = f.patched(workload); err != nil {
		return nil, err
	}
	out := &Fleet{f: f, workload: workload}
	if d, ok := workload.(*appsv1.Deployment); ok {
		if out.Revision, err = revision(d); err != nil {
			return nil, err
		}
		d.Labels[RevisionLabel] = out.Revision
	}
	return out, nil
}

// revision is the same for the same pods, whatever Deployment they are of.
func revision(d *appsv1.Deployment) (string, error) {
	hash, err := Hash(map[string]any{"template": d.Spec.Template})
	if err != nil {
		return "", err
	}
	return "r" + hash[:8], nil // a letter first, else YAML takes some for numbers
}

// BlueGreen reports whether proxies of another revision wait beside those that serve.
func (g *Gateway) BlueGreen() bool {
	return g.Settings != nil && g.Settings.Rollout != nil && ptr.Deref(g.Settings.Rollout.Strategy, "") == v1alpha1.RolloutBlueGreen
}

// Promotion is when a revision is promoted by its figures.
type Promotion struct {
	Window time.Duration // how long it is compared
	// These are by how much it may be worse: percentage points of answers with 5xx, and percent of
	// the 99th percentile of latencies.
	MaxErrorIncrease, MaxLatencyIncrease float64
}

// Automatic reports whether revisions are promoted by their figures.
func (g *Gateway) Automatic() bool {
	return g.BlueGreen() && g.Settings.Rollout.Promotion != nil &&
		ptr.Deref(g.Settings.Rollout.Promotion.Strategy, "") == v1alpha1.PromotionAutomatic
}

// Promotion completes what the parameters say, where they have it be Automatic.
func (g *Gateway) Promotion() (Promotion, error) {
	set := g.Settings.Rollout.Promotion
	out := Promotion{
		Window:           2 * time.Minute,
		MaxErrorIncrease: float64(ptr.Deref(set.MaxErrorIncrease, 1)), MaxLatencyIncrease: float64(ptr.Deref(set.MaxLatencyIncrease, 50)),
	}
	if set.Window != nil {
		var err error
		if out.Window, err = time.ParseDuration(string(*set.Window)); err != nil {
			return out, fmt.Errorf("rollout.promotion.window: %w", err)
		}
	}
	return out, nil
}

// Autoscaled reports whether an autoscaler decides on the number of proxies.
func (g *Gateway) Autoscaled() bool {
	return g.Settings != nil && g.Settings.Deployment != nil && g.Settings.Deployment.Autoscaling != nil
}

// Replicas is the number of proxies that the parameters and their patches ask for; nil where they leave that to others.
func (fl *Fleet) Replicas() *int32 {
	if d, ok := fl.workload.(*appsv1.Deployment); ok {
		return d.Spec.Replicas
	}
	return nil
}

// Workload is the name of what is to run the proxies. What serves already, and is of the same revision, goes on.
func (fl *Fleet) Workload(live Live) string {
	switch {
	case !fl.f.BlueGreen():
		return fl.f.name
	case live.Revision == fl.Revision && live.Workload != "":
		return live.Workload
	default:
		return revised(fl.f.name, fl.Revision)
	}
}

// revised is the name of what belongs to one revision of a fleet.
func revised(name, revision string) string {
	end := "-" + revision
	if len(name) > maxName-len(end) {
		name = strings.TrimRight(name[:maxName-len(end)], "-")
	}
	return name + end
}

// podRevision finds a revision in the name of a pod: that of its Deployment, and what ReplicaSets and pods append.
var podRevision = regexp.MustCompile(`-(r[0-9a-f]{8})(?:-[a-z0-9]{1,10}-[a-z0-9]{5})?$`)

// RevisionIn is the revision that the name of a Deployment, or of a pod of it, tells; empty where it tells none.
func RevisionIn(name string) string {
	if found := podRevision.FindStringSubmatch(name); found != nil {
		return found[1]
	}
	return ""
}

// Objects returns the objects of a fleet, as they are applied, in the order in which they are: what
// the proxies need comes before them.
func (fl *Fleet) Objects(p Plan) ([]*unstructured.Unstructured, error) {
	f := *fl.f
	next := fl.Workload(p.Live)
	f.live = p.Live.Workload
	if f.live == "" {
		f.live = next
	}
	objects := []apiObject{f.serviceAccount()}
	// Pods of the live revision that start anew find what they had.
	if next == f.name || p.Live.Workload != f.name {
		objects = append(objects, f.configMap(next == f.name))
	}
	if next != f.name && f.bootstrap() != nil {
		objects = append(objects, f.bootstrapOf(next, fl.Revision))
	}
	// All else goes over when clients have been seen to.
	to := f
	if p.Promote {
		to.live = next
	}
	service := to.service()
	if p.Shared {
		own := f.ownLabels()
		service.Spec.Selector = map[string]string{nameLabel: proxyName, GatewayLabel: own[GatewayLabel], ClassLabel: own[ClassLabel]}
		if f.isElsewhere() { // there are proxies of other tenants' Gateways of that name
			service.Spec.Selector[NamespaceLabel] = own[NamespaceLabel]
		}
	}
	objects = append(objects, service)
	before := len(objects)
	autoscaler, err := f.autoscaler()
	if err != nil {
		return nil, err
	}
	if autoscaler != nil && !p.Unscaled {
		objects = append(objects, autoscaler)
	}
	if budget := f.budget(); budget != nil {
		objects = append(objects, budget)
	}
	for i, object := range objects {
		if objects[i], err = f.patched(object); err != nil {
			return nil, err
		}
	}
	proxies := []apiObject{fl.workload}
	if d, ok := fl.workload.(*appsv1.Deployment); ok {
		d = renamed(d, f.name, next)
		if next != f.live && p.Replicas != nil { // no autoscaler has it yet
			d.Spec.Replicas = p.Replicas
		}
		proxies[0] = d
	}
	if next != f.live && f.BlueGreen() {
		proxies = append(proxies, f.previewService(next, fl.Revision))
	}
	objects = append(slices.Insert(objects, before, proxies...), f.limits()...)
	out := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		if out[i], err = f.applicable(object); err != nil {
			return nil, fmt.Errorf("%s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	return out, nil
}

// renamed is a Deployment as one beside that of the fleet's name, which selects its own pods only.
func renamed(d *appsv1.Deployment, from, to string) *appsv1.Deployment {
	d = d.DeepCopy()
	d.Name = to
	template := &d.Spec.Template
	selectors := []map[string]string{d.Labels, d.Spec.Selector.MatchLabels, template.Labels}
	for _, c := range template.Spec.TopologySpreadConstraints {
		if c.LabelSelector != nil {
			selectors = append(selectors, c.LabelSelector.MatchLabels)
		}
	}
	for _, labels := range selectors {
		if labels[InstanceLabel] == from {
			labels[InstanceLabel] = to
		}
	}
	for i := range template.Spec.Volumes {
		if v := &template.Spec.Volumes[i]; v.Name == bootstrapVolume && v.ConfigMap != nil {
			v.ConfigMap.Name = to
		}
	}
	return d
}

// bootstrapOf has what the Envoys of one revision start with.
func (f *fleet) bootstrapOf(workload, revision string) apiObject {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: f.revisionMeta(workload, revision),
		Data:       map[string]string{bootstrapKey: string(f.bootstrap())},
	}
}

// previewService leads to the proxies of a revision that clients are not led to yet, from within the
// cluster.
func (f *fleet) previewService(workload, revision string) apiObject {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: f.revisionMeta(f.options.Places.PreviewName(f.Name, f.Class).Name, revision),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selecting(workload), Ports: f.servicePorts(nil),
		},
	}
}

func (f *fleet) revisionMeta(name, revision string) metav1.ObjectMeta {
	out := f.meta(map[string]string{RevisionLabel: revision}, nil)
	out.Name = name
	return out
}

// selecting picks the pods of a workload. It can't be changed later: it says no more than what tells
// the workloads of a namespace apart.
func selecting(workload string) map[string]string {
	return map[string]string{nameLabel: proxyName, InstanceLabel: workload}
}

// LiveOf is the name of the workload that a fleet's Service leads to.
func LiveOf(s *corev1.Service) string {
	if live := s.Annotations[LiveAnnotation]; live != "" {
		return live
	}
	return s.Name
}

// serviceAnnotations say what the Service leads to.
func (f *fleet) serviceAnnotations(further map[string]string) map[string]string {
	out := kept(nil, further)
	out[LiveAnnotation] = f.live
	return out
}
