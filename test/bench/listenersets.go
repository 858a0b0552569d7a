package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

const (
	// listenerSets is how many there are before others are added.
	listenerSets = 2500
	// listenerSetsAdded is how many are added one after the other.
	listenerSetsAdded = 15
	// keptConnections is how many connections are open meanwhile, each to another host.
	keptConnections = 300
)

// tenantsManifest is the Gateway with the backend of all routes. The ListenerSets share the port of
// its own listener, which has the certificate of a host that nobody asks for.
const tenantsManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: gateway
  namespace: bench
spec:
  gatewayClassName: gatehouse
  allowedListeners:
    namespaces:
      from: Same
  listeners:
    - name: https
      protocol: HTTPS
      port: 80
      hostname: gateway.example.com
      tls:
        certificateRefs:
          - name: gateway
---
`

// tenantManifest is a ListenerSet with a host of its own, and the route of that host.
const tenantManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata:
  name: %[1]s
  namespace: bench
spec:
  parentRef:
    name: gateway
  listeners:
    - name: https
      protocol: HTTPS
      port: 80
      hostname: %[2]s
      tls:
        certificateRefs:
          - name: %[1]s
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: %[1]s
  namespace: bench
spec:
  parentRefs:
    - kind: ListenerSet
      group: gateway.networking.k8s.io
      name: %[1]s
  hostnames:
    - %[2]s
  rules:
    - backendRefs:
        - name: backend
          port: 80
---
`

const certificateManifest = `apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: bench
type: kubernetes.io/tls
data:
  tls.crt: %s
  tls.key: %s
`

// authority signs the certificates of hosts. All have one key, which makes them cheap to make.
type authority struct {
	key         *ecdsa.PrivateKey
	encodedKey  string
	certificate *x509.Certificate
	pool        *x509.CertPool
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, encodedKey: encoded("PRIVATE KEY", raw), pool: x509.NewCertPool()}
	own := certificate("bench")
	own.IsCA, own.BasicConstraintsValid, own.KeyUsage = true, true, x509.KeyUsageCertSign
	if raw, err = x509.CreateCertificate(rand.Reader, own, own, key.Public(), key); err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.certificate)
	return a, nil
}

func certificate(host string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// encoded is PEM as a Secret has it.
func encoded(kind string, raw []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

// secret returns the Secret with a host's certificate.
func (a *authority) secret(name, host string) ([]byte, error) {
	raw, err := x509.CreateCertificate(rand.Reader, certificate(host), a.certificate, a.key.Public(), a.key)
	return fmt.Appendf(nil, certificateManifest, name, encoded("CERTIFICATE", raw), a.encodedKey), err
}

// tenants is one running system with ListenerSets, each of which has a host, a certificate and a
// route of its own in one file.
type tenants struct {
	*workload
	*authority
}

// put brings an entry's ListenerSet.
func (t *tenants) put(e entry) error {
	secret, err := t.secret(e.name(), e.host())
	if err != nil {
		return err
	}
	return errors.Join(
		t.stage(e.fileName(), slices.Concat(fmt.Appendf(nil, tenantManifest, e.name(), e.host()), secret)),
		t.place(e.fileName()),
	)
}

// client returns one that takes no certificate but that of the host.
func (t *tenants) client(host string) *client {
	return &client{Client: visit.Client{Address: t.address(), TLS: &tls.Config{ServerName: host, RootCAs: t.pool}}}
}

// ask sends a request over a new connection.
func (t *tenants) ask(host string) (bool, error) {
	c := t.client(host)
	defer c.Close()
	a, err := c.get(host)
	return err == nil && ok(a), err
}

// listenerSets measures many ListenerSets, and what one more costs.
func (b *real) listenerSets(ctx context.Context) error {
	return b.within(ctx, listenerSets, func(ctx context.Context, s *standalone, entries []entry) error {
		a, err := newAuthority()
		if err != nil {
			return err
		}
		t := &tenants{&workload{real: b, standalone: s, routes: listenerSets, entries: entries}, a}
		secret, err := t.secret("gateway", "gateway.example.com")
		if err != nil {
			return err
		}
		backend := backendManifest("backend", b.backends[0].port(0))
		if err := t.stage("gateway.yaml", bytes.Join([][]byte{[]byte(tenantsManifest), secret, []byte("---\n"), backend}, nil)); err != nil {
			return err
		}
		if err := t.place("gateway.yaml"); err != nil {
			return err
		}
		for _, e := range entries {
			if err := t.put(e); err != nil {
				return err
			}
		}
		b.backends[0].keep(true)
		if err := t.coldStart(ctx); err != nil {
			return err
		}
		if err := b.writeProfiles(ctx, s, listenerSetStart, t.routes); err != nil {
			return err
		}
		if err := t.additions(ctx); err != nil {
			return errors.Join(err, s.alive())
		}
		return b.writeProfiles(ctx, s, listenerSetAdd, t.routes)
	})
}

// coldStart measures until every host serves its certificate.
func (t *tenants) coldStart(ctx context.Context) error {
	const (
		clients = 4
		limit   = 3 * time.Minute
		pause   = 2 * time.Millisecond
	)
	began := time.Now()
	if err := t.start(); err != nil {
		return err
	}
	group, around := errgroup.WithContext(ctx)
	for part := range clients {
		group.Go(func() error {
			for i := part; i < len(t.entries); i += clients {
				host := t.entries[i].host()
				err := until(around, host+" to serve", limit, pause, func() (bool, error) {
					served, err := t.ask(host)
					return served, errors.Join(err, t.alive())
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	t.add(listenerSetStart, "seconds", time.Since(began).Seconds())
	used, err := t.usage()
	if err != nil {
		return err
	}
	t.add(listenerSetStart, "envoy_cpu_ms", milliseconds(used.envoy))
	t.add(listenerSetStart, "process_cpu_ms", milliseconds(used.process))
	sent, err := t.sent(ctx)
	if err != nil {
		return err
	}
	t.add(listenerSetStart, "sent_bytes", sent)
	if err := t.memory(listenerSetStart, "envoy_rss_mb"); err != nil {
		return err
	}
	heap, err := t.heap(ctx)
	t.add(listenerSetStart, "heap_mb", heap/1e6)
	return errors.Join(err, t.ready(ctx))
}

// additions measures what one more ListenerSet costs, and what it does to connections that are open.
func (t *tenants) additions(ctx context.Context) error {
	kept := make([]*client, keptConnections)
	for i := range kept {
		e := t.pick(i)
		kept[i] = t.client(e.host())
		defer kept[i].Close()
		if a, err := kept[i].get(e.host()); err != nil || !ok(a) {
			return fmt.Errorf("%s is answered with %d: %w", e.host(), a.status, err)
		}
	}
	sent, err := t.sent(ctx) // outside of what is timed: it costs CPU itself
	if err != nil {
		return err
	}
	idle, asking, err := t.calibrated(ctx)
	if err != nil {
		return err
	}
	var process, envoy, took []time.Duration
	for i := range listenerSetsAdded {
		e := entry{index: t.routes + i}
		ticks, asked, served := 0, 0, time.Duration(0)
		used, err := t.spent(func() (err error) {
			ticks, asked, served, err = t.addition(ctx, e)
			return err
		})
		if err != nil {
			return err
		}
		own := func(used, idle, asking time.Duration) time.Duration {
			return max(0, used-time.Duration(ticks)*idle-time.Duration(asked)*asking)
		}
		process = append(process, own(used.process, idle.process, asking.process))
		envoy = append(envoy, own(used.envoy, idle.envoy, asking.envoy))
		took = append(took, served)
	}
	after, err := t.sent(ctx)
	if err != nil {
		return err
	}
	dropped := 0
	for i, c := range kept {
		conn := c.Conn
		if a, err := c.get(t.pick(i).host()); err != nil || !ok(a) || c.Conn != conn {
			dropped++
			t.log.Debug("a connection is dropped", "host", t.pick(i).host(), "status", a.status, "error", err)
		}
	}
	t.add(listenerSetAdd, "latency_p50_ms", milliseconds(percentile(sorted(took), .5)))
	t.add(listenerSetAdd, "process_cpu_ms", milliseconds(percentile(sorted(process), .5)))
	t.add(listenerSetAdd, "process_cpu_mean_ms", milliseconds(mean(process)))
	t.add(listenerSetAdd, "envoy_cpu_ms", milliseconds(percentile(sorted(envoy), .5)))
	t.add(listenerSetAdd, "sent_bytes", (after-sent)/listenerSetsAdded)
	t.add(listenerSetAdd, "dropped_connections", float64(dropped))
	t.add(listenerSetAdd, "connections", keptConnections)
	return nil
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// calibrated returns what a tick takes when nothing happens, and what a request over a connection of
// its own adds.
func (t *tenants) calibrated(ctx context.Context) (idle, asking usage, err error) {
	const ticks = 200 // as long as Envoy lets pass between two looks at its statistics
	if idle, err = t.spent(func() error { return pace(ctx, ticks, func() error { return nil }) }); err != nil {
		return idle, asking, err
	}
	asking, err = t.spent(func() error {
		i := 0
		return pace(ctx, ticks, func() error {
			i++
			_, err := t.ask(t.pick(i).host())
			return err
		})
	})
	asking = usage{max(0, asking.envoy-idle.envoy) / ticks, max(0, asking.process-idle.process) / ticks}
	return usage{idle.envoy / ticks, idle.process / ticks}, asking, err
}

// addition adds a ListenerSet and asks for its host once a tick until it serves. What follows, such as
// taking the old configuration down, gets some ticks more.
func (t *tenants) addition(ctx context.Context, e entry) (ticks, asked int, served time.Duration, err error) {
	const least = 20
	if err := t.put(e); err != nil {
		return 0, 0, 0, err
	}
	for began := time.Now(); served == 0 || ticks < least; ticks++ {
		if err := pace(ctx, 1, func() error { return nil }); err != nil {
			return 0, 0, 0, err
		}
		if served != 0 {
			continue
		}
		asked++
		if ok, err := t.ask(e.host()); ok {
			served = time.Since(began)
		} else if time.Since(began) > changeLimit {
			return 0, 0, 0, fmt.Errorf("%s does not serve after %s: %w", e.host(), changeLimit, err)
		}
	}
	return ticks, asked, served, nil
}
