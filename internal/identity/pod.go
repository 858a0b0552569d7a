package identity

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// labelGateway is on every pod of a fleet. Its value may be a hash;
	// annotationGateway has namespace/name in full.
	labelGateway      = "gateway.networking.k8s.io/gateway-name"
	annotationGateway = "gatehouse.dev/gateway"
)

// fleetOf returns the Gateway of a token's pod, and what it is there. What the pod says of
// itself only names the fleet; that it is of it, and as what, shows in the ServiceAccount, of
// which the token is the proof.
func (s *Server) fleetOf(ctx context.Context, pod *corev1.Pod, h *holder) (object.Name, Role, error) {
	gateway := gatewayOf(pod, s.o.Namespaces)
	if pod.Labels[labelGateway] == "" {
		return gateway, "", refuse(reasonForeign, fmt.Sprintf("Pod %s/%s is not of a fleet: it has no label %s", pod.Namespace, pod.Name, labelGateway))
	}
	if full, ok := pod.Annotations[annotationGateway]; ok {
		if named, isName := object.ParseName(full); !isName || !slices.Contains(s.o.Namespaces(named), pod.Namespace) {
			return gateway, "", refuse(reasonForeign, fmt.Sprintf("Pod %s/%s is not of the fleet of a Gateway whose proxies are in its namespace: its annotation %s is %q",
				pod.Namespace, pod.Name, annotationGateway, full))
		}
	}
	own := object.Name{Namespace: h.namespace, Name: h.serviceAccount}
	account, ok := s.o.Fleet(gateway)
	if !ok {
		return gateway, "", refuse(reasonForeign, fmt.Sprintf("Gateway %s has no fleet", gateway))
	}
	if s.o.Limits != nil {
		if limits := s.o.Limits(gateway); !limits.IsZero() && own == limits && pod.Spec.ServiceAccountName == limits.Name {
			return gateway, Limits, nil
		}
	}
	if own != account && s.o.Former != nil {
		former, err := s.o.Former(ctx, gateway, own)
		if err != nil {
			return gateway, "", err
		}
		if former {
			account = own
		}
	}
	if own != account || pod.Spec.ServiceAccountName != account.Name {
		return gateway, "", refuse(reasonForeign, fmt.Sprintf("ServiceAccount %s is not that of the fleet of Gateway %s, which is %s", own, gateway, account))
	}
	return gateway, Proxy, nil
}

// gatewayOf returns the Gateway that a pod says it belongs to, if its proxies may be in the pod's namespace.
func gatewayOf(pod *corev1.Pod, namespaces func(object.Name) []string) object.Name {
	gateway := object.Name{Namespace: pod.Namespace, Name: pod.Labels[labelGateway]}
	if named, isName := object.ParseName(pod.Annotations[annotationGateway]); isName && slices.Contains(namespaces(named), pod.Namespace) {
		gateway = named
	}
	return gateway
}

// orOwn is where the pods of a Gateway's fleet may be; without a function in the Gateway's namespace.
func orOwn(namespaces func(object.Name) []string) func(object.Name) []string {
	if namespaces != nil {
		return namespaces
	}
	return func(gateway object.Name) []string { return []string{gateway.Namespace} }
}

// pod returns the pod that a token is bound to, if it runs.
func (s *Server) pod(ctx context.Context, h *holder, now time.Time) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := s.o.Client.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: h.pod}, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != h.podUID:
		return nil, gone(h.namespace, h.pod)
	case err != nil:
		return nil, fmt.Errorf("Pod %s/%s: %w", h.namespace, h.pod, err) //nolint:revive // a kind's name
	}
	if no := runs(pod, now); no != nil {
		return nil, no
	}
	return pod, nil
}

func gone(namespace, name string) *refusal {
	return refuse(reasonPodGone, fmt.Sprintf("Pod %s/%s does not exist any more", namespace, name))
}

// runs refuses a pod that has ended.
func runs(pod *corev1.Pod, now time.Time) *refusal {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return refuse(reasonPodGone, fmt.Sprintf("Pod %s/%s has ended", pod.Namespace, pod.Name))
	case pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Time):
		// Until then it drains, and may well need another certificate.
		return refuse(reasonPodGone, fmt.Sprintf("Pod %s/%s should have ended", pod.Namespace, pod.Name))
	}
	return nil
}

// sentBy refuses a token or certificate that comes from another address than its pod's.
func sentBy(pod *corev1.Pod, source netip.Addr) *refusal {
	if len(pod.Status.PodIPs) == 0 {
		return refuse(reasonNoAddress, fmt.Sprintf("Pod %s/%s has no address yet", pod.Namespace, pod.Name))
	}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Unmap() == source {
			return nil
		}
	}
	return refuse(reasonAddress, fmt.Sprintf("what is Pod %s/%s's comes from %s, which is not its address", pod.Namespace, pod.Name, source))
}
