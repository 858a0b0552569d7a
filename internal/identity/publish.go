package identity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bundleKey is the key of what is published.
const bundleKey = "ca.crt"

// publish writes the certificates of the roots to trust into their ConfigMap, unless it
// has them. Every controller may do so: what they write is the same.
func (a *Authority) publish(ctx context.Context) error {
	if a.o.Published == "" {
		return nil
	}
	bundle := string(a.Bundle())
	live := &corev1.ConfigMap{}
	err := a.o.Client.Get(ctx, client.ObjectKey{Namespace: a.o.Namespace, Name: a.o.Published}, live)
	if client.IgnoreNotFound(err) == nil && live.Data[bundleKey] != bundle {
		err = a.o.Client.Apply(ctx, corev1ac.ConfigMap(a.o.Published, a.o.Namespace).
			WithAnnotations(map[string]string{"kubernetes.io/description": "The authority of the controllers' certificates, for proxies, and for who makes them."}).
			WithData(map[string]string{bundleKey: bundle}), client.FieldOwner("gatehouse"), client.ForceOwnership)
	}
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", a.o.Namespace, a.o.Published, err) //nolint:revive // a kind's name
	}
	return nil
}
