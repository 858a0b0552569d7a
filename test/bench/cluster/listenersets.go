package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// routesOfSet is how many routes a ListenerSet has in the public benchmark.
const routesOfSet = 16

// addListenerSets creates ListenerSets with a listener of HTTPS each, and their
// routes, until all are served.
func (b *bench) addListenerSets(ctx context.Context, targets []*target) error {
	certificate := certs.For("*.example.com")
	if err := b.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "cert", Namespace: loadNamespace},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate.PEM(), corev1.TLSPrivateKeyKey: certificate.KeyPEM()},
	}); err != nil {
		return err
	}
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range b.sets {
		group.Go(func() error { return b.createSets(creating, many(i), targets) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	created := time.Now()
	for _, t := range targets {
		ip, _, err := net.SplitHostPort(t.address)
		if err != nil {
			return err
		}
		wrong := 0
		for i := range b.sets {
			v := b.visit(net.JoinHostPort(ip, "443"), &tls.Config{RootCAs: certificate.Pool(), MinVersion: tls.VersionTLS12})
			for k := range routesOfSet {
				_, w, err := v.served(ctx, host(many(i)), fmt.Sprintf("/%d", k))
				if wrong += w; err != nil {
					v.Close()
					return fmt.Errorf("%s: %w", t, err)
				}
			}
			v.Close()
		}
		b.report.add(b.source(listenerSets, t), "wrong_answers", float64(wrong))
		b.report.add(b.source(listenerSets, t), "setup_seconds", time.Since(created).Seconds())
	}
	u, err := b.usage(ctx)
	if err != nil {
		return err
	}
	for _, t := range targets {
		b.report.add(b.source(listenerSets, t), "controller_rss_mib", u.memory)
	}
	return nil
}

// createSets makes a ListenerSet for each target, and the routes of all of them.
func (b *bench) createSets(ctx context.Context, name string, targets []*target) error {
	if err := b.createService(ctx, name); err != nil {
		return err
	}
	var parents []gwv1.ParentReference
	for i, t := range targets {
		set := &gwv1.ListenerSet{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Namespace: loadNamespace},
			Spec: gwv1.ListenerSetSpec{
				ParentRef: gwv1.ParentGatewayReference{Namespace: new(gwv1.Namespace(t.key.Namespace)), Name: gwv1.ObjectName(t.key.Name)},
				Listeners: []gwv1.ListenerEntry{{
					Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType, Hostname: new(gwv1.Hostname(host(name))),
					TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: "cert"}}},
				}},
			},
		}
		if err := b.client.Create(ctx, set); err != nil {
			return err
		}
		parents = append(parents, gwv1.ParentReference{Kind: new(gwv1.Kind("ListenerSet")), Name: gwv1.ObjectName(set.Name)})
	}
	for k := range routesOfSet {
		r := route(fmt.Sprintf("%s-%d", name, k), nil, to(fmt.Sprintf("/%d", k), name, 80))
		r.Spec.ParentRefs, r.Spec.Hostnames = parents, []gwv1.Hostname{gwv1.Hostname(host(name))}
		if err := b.client.Create(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
