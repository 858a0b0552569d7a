package topology

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// InferencePool is an InferencePool, whoever refers to it.
type InferencePool struct {
	Name     object.Name
	Object   *poolsv1.InferencePool
	Accepted metav1.Condition
	// ResolvedRefs says whether the endpoint picker can be asked.
	ResolvedRefs metav1.Condition
	Backend      ir.BackendKey // zero where the pool can't be used
	// PolicyTargets are those of the endpoint picker, see Route.
	PolicyTargets []object.Key
	waits         []object.Key // what is broken and told elsewhere
}

// Equal reports whether two nodes say the same of the same object.
func (p *InferencePool) Equal(o *InferencePool) bool {
	return p.Object == o.Object && p.Name == o.Name && p.Accepted == o.Accepted && p.ResolvedRefs == o.ResolvedRefs &&
		p.Backend == o.Backend && slices.Equal(p.PolicyTargets, o.PolicyTargets) && slices.Equal(p.waits, o.waits)
}

func (g *Graph) declareInferencePools() flow.Table[object.Name, *InferencePool] {
	return flow.Map("topology-inference-pools", g.in.InferencePools,
		func(c *flow.Ctx, k object.Name, o *poolsv1.InferencePool, emit func(object.Name, *InferencePool)) {
			emit(k, g.inferencePool(c, k, o))
		})
}

// inferencePool makes the node of an InferencePool.
func (g *Graph) inferencePool(c *flow.Ctx, name object.Name, o *poolsv1.InferencePool) *InferencePool {
	p := &InferencePool{Name: name, Object: o, Accepted: condition.PoolAccepted(), ResolvedRefs: condition.PoolResolvedRefs()}
	ref := o.Spec.EndpointPickerRef
	if ref == nil {
		p.Accepted = condition.PoolWithoutPicker()
		return p
	}
	b := ir.Backend{Object: object.Key{Kind: kind.InferencePool, Name: name}, Protocol: ir.HTTP1}
	if len(o.Spec.TargetPorts) > 0 {
		b.Port = int32(o.Spec.TargetPorts[0].Number)
	}
	if o.Spec.AppProtocol == poolsv1.AppProtocolH2C {
		b.Protocol = ir.H2C
	}
	r := resolver{g: g, c: c, route: b.Object}
	service, problem := r.picker(ref)
	p.PolicyTargets, p.waits = r.policyTargets, r.waits
	open := ref.FailureMode == poolsv1.EndpointPickerFailOpen
	switch {
	case problem == "":
		b.Picker = ir.Picker{Service: service}
		if open {
			b.Picker.Failure = ir.PickerFailOpen
		}
	default:
		p.ResolvedRefs = condition.PoolPickerInvalid(problem, ref.FailureMode)
		if !open {
			return p
		}
	}
	p.Backend = b.Key()
	return p
}

// picker resolves a reference to an endpoint picker, or says why it can't be asked. Pickers show certificates that they
// have signed themselves, so that TLS without a check is the protocol's way to speak to them: a BackendTLSPolicy for
// the Service has the certificate checked, and a port with appProtocol kubernetes.io/h2c is spoken to in clear text.
func (r *resolver) picker(ref *poolsv1.EndpointPickerRef) (service ir.BackendKey, problem string) {
	const at = "spec.endpointPickerRef"
	field := func() string { return at }
	of := object.KindOf(string(valueOr(ref.Group, "")), string(ref.Kind))
	if ref.Kind == "" {
		of = object.KindOf(of.Group(), kind.Service.Name())
	}
	if of != kind.Service {
		return ir.BackendKey{}, condition.PickerKind(kindText(gwv1.Group(of.Group()), gwv1.Kind(of.Name())))
	}
	to := reference{object: object.Key{Kind: of, Name: name(r.route.Namespace, string(ref.Name))}, use: ir.UseGRPC, field: field}
	if ref.Port != nil {
		to.port = new(int32(ref.Port.Number))
	}
	p, refused := r.servicePort(to)
	policies, some := r.g.policiesOf(r.c, to.object)
	if some {
		r.policyTargets = append(r.policyTargets, to.object)
	}
	switch {
	case refused.Problem != nil:
		if refused.Problem.Reason == condition.ReasonWaiting {
			r.waits = append(r.waits, to.object)
		}
		return ir.BackendKey{}, refused.Problem.Message
	case p.DNS != "":
		return ir.BackendKey{}, condition.PickerExternalName(to.object.Name.String())
	}
	if c := policies.encrypt(p, field, r.g.options.Reader(r.route.Namespace)); c != nil {
		return ir.BackendKey{}, c.Message
	}
	policies.set(p)
	p.Protocol = ir.H2C
	if p.TLS.IsZero() && p.appProtocol != "kubernetes.io/h2c" {
		p.TLS = ir.BackendTLS{Unverified: true}
	}
	return p.Key(), ""
}

// inferencePool resolves a reference to an InferencePool. The port of such a reference says nothing: the pool has its own.
func (r *resolver) inferencePool(ref reference) BackendRef {
	if !r.g.permitted(r.c, r.route.Kind, r.route.Namespace, ref.object) {
		return problem(condition.BackendNotPermitted(ref.field(), ref.object.String(), r.g.grantFor(r.c, r.route, ref.object)))
	}
	if ref.use != ir.UseHTTP {
		return problem(condition.PoolOnlyBackend(ref.field(), ref.object.String()))
	}
	p, ok := flow.Get(r.c, r.g.InferencePools, ref.object.Name)
	if !ok {
		return problem(condition.BackendNotFound(ref.field(), r.g.missing(r.c, ref.object, &r.route)))
	}
	r.policyTargets = append(append(r.policyTargets, ref.object), p.PolicyTargets...)
	switch {
	case p.Accepted.Status != metav1.ConditionTrue:
		return problem(condition.PoolRefused(ref.field(), ref.object.String(), p.Accepted.Message))
	case p.Backend.IsZero():
		r.waits = append(r.waits, p.waits...)
		return problem(condition.PoolRefused(ref.field(), ref.object.String(), p.ResolvedRefs.Message))
	}
	return BackendRef{Backend: p.Backend}
}

// declareInferencePoolAncestors finds the Gateways with routes that refer to each InferencePool, sorted.
func (g *Graph) declareInferencePoolAncestors() flow.Table[object.Name, []Ancestor] {
	return declareAncestors(g, "topology-inference-pool-ancestors", g.InferencePools, condition.PoolAccepted(),
		func(p *InferencePool) []policy.Target {
			return []policy.Target{{Key: object.Key{Kind: kind.InferencePool, Name: p.Name}}}
		},
		func(_ *flow.Ctx, p *InferencePool, _ int) *metav1.Condition {
			if p.Accepted.Status == metav1.ConditionTrue {
				return nil
			}
			return &p.Accepted
		})
}

func poolSections(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	_, ok := flow.Get(c, g.in.InferencePools, k.Name)
	return nil, ok
}

// Pod is a Pod that can get requests, as far as that depends on it.
type Pod struct {
	Labels   map[string]string
	Address  string // an IP address
	Draining bool   // is about to end
}

// Equal reports whether two pods are alike.
func (p *Pod) Equal(o *Pod) bool {
	return p.Address == o.Address && p.Draining == o.Draining && maps.Equal(p.Labels, o.Labels)
}

// declarePods finds the Pods that can get requests, by their namespaces.
func (g *Graph) declarePods() {
	pods := flow.Map("topology-pods", g.in.Pods, func(_ *flow.Ctx, k object.Name, o *corev1.Pod, emit func(object.Name, *Pod)) {
		if p := g.pod(o); p != nil {
			emit(k, p)
		}
	})
	g.podsByNamespace = flow.NewIndex(pods, func(k object.Name, _ *Pod, yield func(string)) { yield(k.Namespace) }, object.Name.Compare)
}

// pod makes the node of a Pod; nil for one that gets no requests. It is as with the endpoints of a Service: those that end
// get some while there are no others, and a condition that nobody has set is true.
func (g *Graph) pod(o *corev1.Pod) *Pod {
	p := &Pod{Labels: o.Labels, Address: o.Status.PodIP, Draining: o.DeletionTimestamp != nil}
	switch o.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return nil
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}
	if !g.leadsOn(p.Address) {
		return nil
	}
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return nil
		}
	}
	return p
}

// PodsOf yields the Pods that an InferencePool selects, with the ports at which each is an endpoint; nothing for one that
// doesn't exist.
func (g *Graph) PodsOf(c *flow.Ctx, pool object.Name) (ports []int32, pods []*Pod) {
	o, ok := flow.Get(c, g.in.InferencePools, pool)
	if !ok {
		return nil, nil
	}
	for _, p := range o.Spec.TargetPorts {
		ports = append(ports, int32(p.Number))
	}
	for _, p := range flow.Select(c, g.podsByNamespace, pool.Namespace).All() {
		if selectsPod(o.Spec.Selector.MatchLabels, p.Labels) {
			pods = append(pods, p)
		}
	}
	return ports, pods
}

// selectsPod reports whether labels are what a selector asks for. One that asks for nothing selects nothing, as that of a
// Service.
func selectsPod(selector map[poolsv1.LabelKey]poolsv1.LabelValue, labels map[string]string) bool {
	for k, v := range selector {
		if is, ok := labels[string(k)]; !ok || is != string(v) {
			return false
		}
	}
	return len(selector) > 0
}
