package cluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/migrate"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/ingress"
)

// ingressEvents makes Events at Ingresses that are refused, or served without a part of them: they have no conditions.
type ingressEvents struct {
	tableReader[string, []source.Problem]
}

func newIngressEvents(c *Cluster) *ingressEvents {
	told := map[string]map[string]bool{} // messages, by where problems stand
	return &ingressEvents{tableReader[string, []source.Problem]{
		table: c.pipeline.Problems,
		onSet: func(at string, list []source.Problem) {
			said := map[string]bool{}
			for _, p := range list {
				if p.Reason != source.NotConverted {
					continue
				}
				said[p.Message] = true
				if live := c.source.Live(p.Key); live != nil && !told[at][p.Message] {
					c.recorder.Eventf(live, nil, corev1.EventTypeWarning, string(p.Reason), "Convert", "%s", p.Message)
				}
			}
			told[at] = said
		},
		onGone: func(at string) { delete(told, at) },
	}}
}

// Nothing is removed for a problem, and none is in the cluster.
func (*ingressEvents) complete()          {}
func (*ingressEvents) changed(object.Key) {}

func (*ingressEvents) run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// ingressAddresses writes the addresses of the Gateway that is made for Ingresses into these, for those who make DNS
// records of them. Of a class that ingress-nginx serves too the status is ingress-nginx's to write.
type ingressAddresses struct {
	cluster *Cluster
	of      ingress.Options
	log     *slog.Logger
	wake    chan struct{}

	mu        sync.Mutex
	served    map[object.Name]bool
	addresses []networkingv1.IngressLoadBalancerIngress
}

func newIngressAddresses(c *Cluster, of ingress.Options) *ingressAddresses {
	return &ingressAddresses{cluster: c, of: of, log: c.opts.Logs.For(configuration.LogStatus), wake: make(chan struct{}, 1), served: map[object.Name]bool{}}
}

func (a *ingressAddresses) begin(e *flow.Engine) {
	p := a.cluster.pipeline
	e.View(func(ctx *flow.Ctx) {
		for k, o := range flow.All(ctx, p.Inputs.Others) {
			a.serve(k, o)
		}
		status, _ := flow.Get(ctx, p.GatewayStatus, a.of.Gateway)
		a.locate(status)
	})
}

func (a *ingressAddresses) committed(c *flow.Commit) {
	p := a.cluster.pipeline
	for _, ch := range flow.Changes(c, p.Inputs.Others) {
		if ch.Has {
			a.serve(ch.Key, ch.New)
		} else {
			a.serve(ch.Key, nil)
		}
	}
	for _, ch := range flow.Changes(c, p.GatewayStatus) {
		if ch.Key == a.of.Gateway {
			a.locate(ch.New)
		}
	}
}

// serve notes whether an object is an Ingress that is served; nil is none.
func (a *ingressAddresses) serve(k object.Key, o source.Object) {
	if k.Kind != kind.Ingress {
		return
	}
	in, ok := o.(*networkingv1.Ingress)
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.served, k.Name); ok && a.of.Serves(in) {
		a.served[k.Name] = true
		a.look()
	}
}

// locate notes where the Gateway is reached.
func (a *ingressAddresses) locate(status *gwv1.GatewayStatus) {
	var list []networkingv1.IngressLoadBalancerIngress
	if status != nil {
		for _, address := range status.Addresses {
			if _, err := netip.ParseAddr(address.Value); err == nil {
				list = append(list, networkingv1.IngressLoadBalancerIngress{IP: address.Value})
			} else {
				list = append(list, networkingv1.IngressLoadBalancerIngress{Hostname: address.Value})
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !reflect.DeepEqual(a.addresses, list) {
		a.addresses = list
		a.look()
	}
}

func (a *ingressAddresses) look() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (*ingressAddresses) complete() {}

func (a *ingressAddresses) changed(k object.Key) {
	if k.Kind == kind.Ingress {
		a.look()
	}
}

// ingressRetry is how long after a failure the addresses are written again.
const ingressRetry = 10 * time.Second

func (a *ingressAddresses) run(ctx context.Context) error {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.wake:
		case <-again:
		}
		again = nil
		if err := a.write(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("the addresses of Ingresses can't be written; trying again", "error", err, "in", ingressRetry)
			again = time.After(ingressRetry)
		}
	}
}

// write writes the addresses where they are others.
func (a *ingressAddresses) write(ctx context.Context) error {
	a.mu.Lock()
	want := a.addresses
	var others []*networkingv1.Ingress
	for name := range a.served {
		live, ok := a.cluster.source.Live(object.Key{Kind: kind.Ingress, Name: name}).(*networkingv1.Ingress)
		if ok && len(want) > 0 && !reflect.DeepEqual(live.Status.LoadBalancer.Ingress, want) {
			others = append(others, live)
		}
	}
	a.mu.Unlock()
	if len(others) == 0 {
		return nil
	}
	class := &networkingv1.IngressClass{}
	if err := a.cluster.direct.Get(ctx, client.ObjectKey{Name: a.of.Class}, class); client.IgnoreNotFound(err) != nil {
		return err
	}
	if class.Spec.Controller == migrate.Controller {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: want}}})
	if err != nil {
		return err
	}
	for _, live := range others {
		o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
		err := a.cluster.direct.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(infra.ManagedBy))
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
