package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// PodsOptions configure a Pods.
type PodsOptions struct {
	// Client reads the API server itself, not a cache.
	Client client.Reader
	// Namespaces returns those in which the pods of a Gateway's fleet may be; nil is the Gateway's own.
	Namespaces func(gateway object.Name) []string
	// AnySource lets pods connect from any address.
	AnySource bool
	Log       *slog.Logger
}

// Pods says whether the pod that a certificate names may be connected. A certificate
// outlives its pod, and its key may have been stolen: it counts only from the address of
// the pod, and as long as that runs.
type Pods struct {
	o        PodsOptions
	asking   chan struct{}
	failures rate.Sometimes
}

// NewPods returns a Pods.
func NewPods(o PodsOptions) *Pods {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Namespaces = orOwn(o.Namespaces)
	return &Pods{o: o, asking: make(chan struct{}, maxReviews), failures: rate.Sometimes{First: firstLines, Interval: lineInterval}}
}

// Admit says why a pod of the fleet of a Gateway may not be connected
// from an address. Where the API server can't be asked, the certificate alone counts: what
// runs goes on without it.
func (p *Pods) Admit(ctx context.Context, gateway object.Name, pod string, source netip.Addr) error {
	return p.judged(p.admit(ctx, gateway, pod, source), gateway, pod)
}

// Again returns an Admit that reads the pods of a namespace once, when the first of them is
// asked about: what is asked of the API server for those who are connected must not grow with
// them. It is for one round of questions, one after the other.
func (p *Pods) Again() func(ctx context.Context, gateway object.Name, pod string, source netip.Addr) error {
	read := map[string]*namespacePods{}
	return func(ctx context.Context, gateway object.Name, name string, source netip.Addr) error {
		err := p.first(gateway, name, source, func(namespace string) (*corev1.Pod, error) {
			in := read[namespace]
			if in == nil {
				in = p.list(ctx, namespace)
				read[namespace] = in
			}
			return in.pods[name], in.err
		})
		return p.judged(err, gateway, name)
	}
}

// namespacePods are the pods of fleets in a namespace by name, or why they could not be read.
type namespacePods struct {
	pods map[string]*corev1.Pod
	err  error
}

func (p *Pods) list(ctx context.Context, namespace string) *namespacePods {
	var list corev1.PodList
	if err := p.o.Client.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{labelGateway}); err != nil {
		return &namespacePods{err: fmt.Errorf("pods of namespace %s: %w", namespace, err)}
	}
	in := &namespacePods{pods: make(map[string]*corev1.Pod, len(list.Items))}
	for i := range list.Items {
		in.pods[list.Items[i].Name] = &list.Items[i]
	}
	return in
}

// judged returns an error that is a refusal. Another one is logged.
func (p *Pods) judged(err error, gateway object.Name, pod string) error {
	if no := (*refusal)(nil); err != nil && !errors.As(err, &no) {
		p.failures.Do(func() {
			p.o.Log.Error("a proxy's pod can't be checked; its certificate alone counts", "gateway", gateway.String(), "pod", pod, "error", err)
		})
		return nil
	}
	return err
}

func (p *Pods) admit(ctx context.Context, gateway object.Name, name string, source netip.Addr) error {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.first(gateway, name, source, func(namespace string) (*corev1.Pod, error) {
		pod := &corev1.Pod{}
		err := p.o.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("Pod %s/%s: %w", namespace, name, err) //nolint:revive // a kind's name
		}
		return pod, nil
	})
}

// first finds the pod in the first namespace in which it may be connected. While one can't be read, it may be there.
func (p *Pods) first(gateway object.Name, name string, source netip.Addr, read func(namespace string) (*corev1.Pod, error)) error {
	var failed, refused error
	for _, namespace := range p.o.Namespaces(gateway) {
		pod, err := read(namespace)
		switch {
		case err != nil:
			failed = err
			continue
		case pod == nil:
			err = gone(namespace, name)
		default:
			err = p.check(pod, gateway, source)
		}
		if err == nil {
			return nil
		}
		if refused == nil || pod != nil {
			refused = err
		}
	}
	if failed != nil {
		return failed
	}
	return refused
}

// check refuses a pod that has ended, is another Gateway's, or has another address.
func (p *Pods) check(pod *corev1.Pod, gateway object.Name, source netip.Addr) error {
	if no := runs(pod, time.Now()); no != nil {
		return no
	}
	// A pod of the same name may be another one's by now.
	if of := gatewayOf(pod, p.o.Namespaces); of != gateway {
		return refuse(reasonForeign, fmt.Sprintf("Pod %s/%s is not of the fleet of Gateway %s", pod.Namespace, pod.Name, gateway))
	}
	if !p.o.AnySource {
		if no := sentBy(pod, source); no != nil {
			return no
		}
	}
	return nil
}
