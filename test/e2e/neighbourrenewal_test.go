//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/bars"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

const (
	renewals         = 20
	handshakesPerSec = 200
)

// handshakes are new TLS connections to an address, at a steady rate, none of which resumes another.
type handshakes struct {
	stop context.CancelFunc
	done sync.WaitGroup

	serial        atomic.Value // of the certificate that was shown last, a string
	begun, failed atomic.Int64
	invalid       atomic.Int64 // of the failed, for the certificate that was shown
	mu            sync.Mutex
	why           map[string]int
}

func startHandshakes(t *testing.T, authority *x509.CertPool, address string) *handshakes {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &handshakes{stop: cancel, why: map[string]int{}}
	h.serial.Store("")
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: authority, ServerName: "shop.example.test"}}
	h.done.Go(func() {
		tick := time.NewTicker(time.Second / handshakesPerSec)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			h.begun.Add(1)
			h.done.Go(func() { h.one(dialer, address) })
		}
	})
	t.Cleanup(h.end)
	return h
}

func (h *handshakes) one(dialer *tls.Dialer, address string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		h.failed.Add(1)
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			h.invalid.Add(1)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.why[err.Error()]++
		return
	}
	h.serial.Store(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String())
	_ = conn.Close()
}

func (h *handshakes) end() {
	h.stop()
	h.done.Wait()
}

// others waits until another certificate is shown than before, and for half a second of handshakes with it.
func (h *handshakes) others(t *testing.T, before string) (serial string) {
	t.Helper()
	defer func() {
		until := h.begun.Load() + handshakesPerSec/2
		eventually(t, neighbourTimeout, func() error {
			if h.begun.Load() < until {
				return errors.New("few handshakes were begun")
			}
			return nil
		})
	}()
	eventually(t, neighbourTimeout, func() error {
		if serial = h.serial.Load().(string); serial == before {
			return errors.New("the certificate is the same")
		}
		return nil
	})
	return serial
}

// watched counts the states in which objects of a namespace are not good.
func (n *neighbourhood) watched(t *testing.T, list client.ObjectList, namespace string, bad func(runtime.Object) string) *atomic.Int64 {
	t.Helper()
	c, err := client.NewWithWatch(n.server.Config, client.Options{Scheme: n.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), list, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	moments := &atomic.Int64{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for event := range w.ResultChan() {
			if event.Type != watch.Added && event.Type != watch.Modified {
				continue
			}
			if what := bad(event.Object); what != "" {
				moments.Add(1)
				t.Log(what)
			}
		}
	})
	t.Cleanup(func() { w.Stop(); reading.Wait() })
	return moments
}

// unserved says what of the listeners of a Gateway or ListenerSet isn't served.
func unserved(o runtime.Object) string {
	listeners := map[gwv1.SectionName][]metav1.Condition{}
	switch o := o.(type) {
	case *gwv1.Gateway:
		for _, l := range o.Status.Listeners {
			listeners[l.Name] = l.Conditions
		}
	case *gwv1.ListenerSet:
		for _, l := range o.Status.Listeners {
			listeners[l.Name] = l.Conditions
		}
	}
	for name, conditions := range listeners {
		for _, reason := range []string{"Programmed", "ResolvedRefs"} {
			if c := meta.FindStatusCondition(conditions, reason); c != nil && c.Status != metav1.ConditionTrue {
				return fmt.Sprintf("listener %s: %s=%s: %s", name, c.Type, c.Status, c.Message)
			}
		}
	}
	return ""
}

// unpaired says of a Secret whether its key is not that of its certificate. One without a certificate is that
// of a key which waits for it.
func unpaired(o runtime.Object) string {
	s, ok := o.(*corev1.Secret)
	if !ok || s.Type != corev1.SecretTypeTLS {
		return ""
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return fmt.Sprintf("Secret %s: %v", s.Name, err)
	}
	return ""
}

// judge records what handshakes and watches have seen.
func (h *handshakes) judge(t *testing.T, n *neighbourhood, how string, took time.Duration, moments int64) {
	t.Helper()
	h.end()
	rate := float64(h.begun.Load()) / took.Seconds()
	t.Logf("%s: %d renewals in %s, %d handshakes, %.0f a second; failed: %v", how, renewals, took.Round(time.Second), h.begun.Load(), rate, h.why)
	if rate < 0.95*handshakesPerSec {
		t.Errorf("only %.0f handshakes a second were begun", rate)
	}
	name := fmt.Sprintf("certificate renewed %d times %s, under %d new TLS connections a second, ", renewals, how, handshakesPerSec)
	figures := []bars.Figure{
		bars.Bar{Name: name + "failed handshakes"}.Measured(float64(h.failed.Load())),
		bars.Bar{Name: name + "moments without a valid certificate"}.Measured(float64(h.invalid.Load() + moments)),
	}
	n.judge(t, figures)
}

// TestNeighbourRenewal is the bar of the library's way: cert-manager puts another certificate into the Secret that
// is there. It is asked to as `cmctl renew` does.
func TestNeighbourRenewal(t *testing.T) {
	n, authority, address := servedPublicWeb(t)
	moments := []*atomic.Int64{n.watched(t, &gwv1.GatewayList{}, "shop", unserved), n.watched(t, &corev1.SecretList{}, "shop", unpaired)}
	started := time.Now()
	h := startHandshakes(t, authority, address)
	serial := h.others(t, "")
	for range renewals {
		n.sh("", fmt.Sprintf(`kubectl patch certificate -n shop web-https --subresource=status --type=json -p '[{"op": "add", "path": "/status/conditions/-",
			"value": {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by hand", "lastTransitionTime": %q}}]'`, time.Now().UTC().Format(time.RFC3339)))
		serial = h.others(t, serial)
	}
	h.judge(t, n, "in place", time.Since(started), moments[0].Load()+moments[1].Load())
}

// replacing is a class whose Gateways get another Certificate, with a Secret of its own, where the team asks for it.
const replacing = `
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayBlueprint
metadata: {name: replacing}
spec:
  values: {defaults: {renewal: "0"}}
  resources:
  - id: certificate
    replace: CreateBeforeDestroy
    template:
      apiVersion: cert-manager.io/v1
      kind: Certificate
      metadata: {name: "${gateway.metadata.name}-${hash(values.renewal)}"}
      spec:
        secretName: "${gateway.metadata.name}-${hash(values.renewal)}"
        dnsNames: [shop.example.test]
        issuerRef: {kind: ClusterIssuer, name: platform}
        privateKey: {algorithm: ECDSA}
  - id: https
    template:
      apiVersion: gateway.networking.k8s.io/v1
      kind: ListenerSet
      metadata: {name: "${gateway.metadata.name}"}
      spec:
        parentRef: {name: "${gateway.metadata.name}"}
        listeners:
        - {name: https, port: %[1]d, protocol: HTTPS, hostname: shop.example.test, tls: {certificateRefs: [{name: "${certificate.spec.secretName}"}]}}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {namespace: gatehouse-system, name: replacing}
spec: {blueprintRef: {name: replacing}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: replacing}
spec:
  controllerName: gatehouse.dev/controller
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: gatehouse-system, name: replacing}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blueprint-replacing, labels: {gatehouse.dev/aggregate-to-blueprints: "true"}}
rules:
- {apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [gateway.networking.k8s.io], resources: [listenersets], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec:
  gatewayClassName: replacing
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: http, port: %[2]d, protocol: HTTP}]
`

// TestNeighbourReplacement is the bar of the other way: a Certificate of another name is made, the ListenerSet names
// its Secret, and the former one goes when no proxy uses it any more.
func TestNeighbourReplacement(t *testing.T) {
	n := startNeighbourhood(t)
	authority := n.startCertManager(t)
	listener := port.OfTest(t)
	n.apply(fmt.Sprintf(replacing, listener, port.OfTest(t)))
	n.serve(t, "shop", "web", "198.18.0.2")
	n.gatewayIs(t, "shop", "web", "gatehouse.dev/Ready")
	moments := n.watched(t, &gwv1.ListenerSetList{}, "shop", unserved)
	started := time.Now()
	h := startHandshakes(t, authority, net.JoinHostPort("198.18.0.2", strconv.Itoa(listener)))
	serial := h.others(t, "")
	for i := range renewals {
		n.apply(fmt.Sprintf(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayValues, metadata: {namespace: shop, name: web},
			spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: web}, defaults: {renewal: "%d"}}}`, i+1))
		serial = h.others(t, serial)
		eventually(t, neighbourTimeout, func() error {
			all := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "cert-manager.io/v1", Kind: "CertificateList"}}
			if err := n.List(t.Context(), all, client.InNamespace("shop")); err != nil || len(all.Items) != 1 {
				return fmt.Errorf("there are %d Certificates: %w", len(all.Items), err)
			}
			return nil
		})
	}
	h.judge(t, n, "by a replacement", time.Since(started), moments.Load())
}
