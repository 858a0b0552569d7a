package pipeline

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// tlsSite is a Gateway with an HTTPS listener whose certificate is in another namespace.
type tlsSite struct {
	*testing.T
	p      *Pipeline
	now    time.Time
	secret object.Name
	sent   map[string]string // the version of each secret that the proxies have
}

func newTLSSite(t *testing.T) *tlsSite {
	s := &tlsSite{
		T: t, p: New(standalone), now: time.Now().Truncate(time.Hour),
		secret: object.Name{Namespace: "certs", Name: "web"}, sent: map[string]string{},
	}
	gw := edgeGateway(gwv1.Listener{Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType, TLS: &gwv1.ListenerTLSConfig{
		CertificateRefs: []gwv1.SecretObjectReference{{Name: "web", Namespace: new(gwv1.Namespace("certs"))}},
	}})
	s.apply(source.Batch{Set: []source.Object{gw, s.grant()}})
	return s
}

func (s *tlsSite) grant() *gwv1.ReferenceGrant {
	grant := &gwv1.ReferenceGrant{}
	grant.Namespace, grant.Name = "certs", "edge"
	grant.Spec.From = []gwv1.ReferenceGrantFrom{{Group: gwv1.GroupName, Kind: "Gateway", Namespace: "default"}}
	grant.Spec.To = []gwv1.ReferenceGrantTo{{Kind: "Secret"}}
	return grant
}

// apply runs a transaction, as loops do.
func (s *tlsSite) apply(batches ...source.Batch) {
	s.Helper()
	c := s.p.Update(func(tx *flow.Tx) {
		s.p.Tick(tx, s.now)
		s.p.Take(tx, batches)
	})
	for _, failure := range c.Failures {
		s.Errorf("%v\n%s", failure, failure.Stack)
	}
	for _, u := range s.p.Updates(c) {
		for _, r := range u.Set {
			if r.Type == envoy.Secrets {
				s.sent[r.Name] = r.Version
			}
		}
		for _, r := range u.Remove {
			if r.Type == envoy.Secrets {
				delete(s.sent, r.Name)
			}
		}
	}
}

func (s *tlsSite) store(chain, key *certs.Certificate) {
	s.Helper()
	o := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: chain.PEM(), corev1.TLSPrivateKeyKey: key.KeyPEM()}}
	o.Namespace, o.Name = s.secret.Namespace, s.secret.Name
	s.apply(source.Batch{Set: []source.Object{o}})
}

func (s *tlsSite) remove(of object.Kind, name object.Name) {
	s.Helper()
	s.apply(source.Batch{Deleted: []object.Key{{Kind: of, Name: name}}})
}

// version is that of the one secret that the proxies have; empty for none.
func (s *tlsSite) version() (out string) {
	for _, out = range s.sent {
	}
	return out
}

// says checks the listener's ResolvedRefs, of which texts are parts, and whether the
// listener serves.
func (s *tlsSite) says(status, reason string, serves bool, texts ...string) {
	s.Helper()
	var l *topology.Listener
	s.p.Engine.View(func(c *flow.Ctx) {
		l, _ = flow.Get(c, s.p.Graph.Listeners, topology.ListenerOf(object.Name{Namespace: "default", Name: "edge"}, object.Name{}, "https"))
	})
	if l == nil {
		s.Fatal("there is no listener")
	}
	c, _ := condition.Find(l.Conditions, string(gwv1.ListenerConditionResolvedRefs))
	if string(c.Status) != status || c.Reason != reason || l.Serves != serves || (s.version() != "") != serves {
		s.Errorf("ResolvedRefs is %s/%s, the listener serves: %v, with a secret: %v; want %s/%s, %v\n%s",
			c.Status, c.Reason, l.Serves, s.version() != "", status, reason, serves, c.Message)
	}
	for _, text := range texts {
		if !strings.Contains(c.Message, text) {
			s.Errorf("%q does not say %q", c.Message, text)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// A pair that is replaced in two steps goes on as it was until the second.
func TestPairReplacedInTwoSteps(t *testing.T) {
	s := newTLSSite(t)
	s.says("False", "InvalidCertificateRef", false)
	old, next := certs.For("a.example"), certs.For("a.example")
	s.store(old, next) // nothing good was ever known
	s.says("False", "InvalidCertificateRef", false, "tls.key does not belong")

	s.store(old, old)
	s.says("True", "ResolvedRefs", true)
	before := s.version()
	s.store(next, old)
	s.says("False", "InvalidCertificateRef", true, "tls.key does not belong", "its last good certificate stays in force, and expires at "+stamp(old.Leaf.NotAfter))
	s.now = s.now.Add(30 * 24 * time.Hour) // a mistake has no end
	s.apply()
	s.says("False", "InvalidCertificateRef", true)
	if s.version() != before {
		t.Error("the proxies have something else than the old pair")
	}
	s.store(next, next)
	s.says("True", "ResolvedRefs", true)
	if s.version() == before {
		t.Error("the proxies have the old pair still")
	}
	s.store(next, old)
	s.says("False", "InvalidCertificateRef", true, stamp(next.Leaf.NotAfter))
}

// The pair of a Secret that was deleted stays for the grace, and no longer.
func TestSecretDeleted(t *testing.T) {
	s := newTLSSite(t)
	pair := certs.For("a.example")
	s.store(pair, pair)
	before := s.version()
	deleted := s.now
	s.remove(kind.Secret, s.secret)
	until := "until " + stamp(deleted.Add(topology.CertificateGrace)) + ", and expires at " + stamp(pair.Leaf.NotAfter)
	s.says("False", "InvalidCertificateRef", true, "Secret certs/web does not exist", until)
	s.now = deleted.Add(topology.CertificateGrace - time.Minute)
	s.apply()
	s.remove(kind.Secret, s.secret) // said again, it begins no new grace
	s.says("False", "InvalidCertificateRef", true, until)
	if s.version() != before {
		t.Error("the proxies have something else than the pair")
	}
	s.now = deleted.Add(topology.CertificateGrace)
	s.apply()
	s.says("False", "InvalidCertificateRef", false, "Secret certs/web does not exist; create it")

	// What is over is not known any more.
	s.store(pair, certs.For("a.example"))
	s.says("False", "InvalidCertificateRef", false, "tls.key does not belong")
	s.store(pair, pair)
	s.says("True", "ResolvedRefs", true)

	// A Secret that is made anew without a pair doesn't bring back for longer what was
	// deleted.
	s.remove(kind.Secret, s.secret)
	until = "until " + stamp(s.now.Add(topology.CertificateGrace))
	s.store(pair, certs.For("a.example"))
	s.says("False", "InvalidCertificateRef", true, "tls.key does not belong", until)
	s.now = s.now.Add(topology.CertificateGrace)
	s.apply()
	s.says("False", "InvalidCertificateRef", false, "tls.key does not belong")
	s.store(pair, pair)
	s.says("True", "ResolvedRefs", true)
	s.remove(kind.Secret, s.secret)
	s.says("False", "InvalidCertificateRef", true, "until "+stamp(s.now.Add(topology.CertificateGrace)))
}

// A permission that is withdrawn is no mistake: the pair goes at once, and is not kept for
// the day when the permission is given again.
func TestGrantWithdrawn(t *testing.T) {
	for _, state := range []string{"good", "broken", "deleted"} {
		t.Run(state, func(t *testing.T) {
			s := newTLSSite(t)
			pair := certs.For("a.example")
			s.store(pair, pair)
			switch state {
			case "broken":
				s.store(pair, certs.For("a.example"))
			case "deleted":
				s.remove(kind.Secret, s.secret)
			}
			s.remove(kind.ReferenceGrant, object.Name{Namespace: "certs", Name: "edge"})
			s.says("False", "RefNotPermitted", false)
			s.store(pair, certs.For("a.example"))
			s.apply(source.Batch{Set: []source.Object{s.grant()}})
			s.says("False", "InvalidCertificateRef", false, "tls.key does not belong")
		})
	}
}

// What is kept of a listener's certificates has an end that is told, and statuses say that
// the listener is programmed.
func TestKeptPairIsProgrammed(t *testing.T) {
	s := newTLSSite(t)
	pair := certs.For("a.example")
	s.store(pair, pair)
	gateway := object.Name{Namespace: "default", Name: "edge"}
	said := xds.State{Connected: 1, Listeners: map[string]string{}}
	s.p.Engine.View(func(c *flow.Ctx) {
		for _, r := range flow.All(c, s.p.Listeners) {
			said.Listeners[r.Name] = r.Version
		}
	})
	s.p.Update(func(tx *flow.Tx) { s.p.TakeFeedback(tx, gateway, said) })
	s.remove(kind.Secret, s.secret)
	var told *gwv1.GatewayStatus
	s.p.Engine.View(func(c *flow.Ctx) { told, _ = flow.Get(c, s.p.GatewayStatus, gateway) })
	if programmed, _ := condition.Find(told.Listeners[0].Conditions, "Programmed"); programmed.Status != "True" {
		t.Errorf("Programmed is %s: %s", programmed.Status, programmed.Message)
	}
	ends := map[string]time.Time{}
	for k, end := range s.p.CertificateEnds {
		ends[k.Name()] = end
	}
	if end := ends["https"]; len(ends) != 1 || !end.Equal(pair.Leaf.NotAfter) {
		t.Errorf("certificates end: %v; want https at %s", ends, pair.Leaf.NotAfter)
	}
}

// What a Gateway shows to its backends outlives a mistake too. A Secret that was deleted
// has no grace there: the certificate says who the Gateway is.
func TestClientCertificateKept(t *testing.T) {
	s := newTLSSite(t)
	gw := edgeGateway()
	gw.Spec.TLS = &gwv1.GatewayTLSConfig{Backend: &gwv1.GatewayBackendTLS{
		ClientCertificateRef: &gwv1.SecretObjectReference{Name: "web", Namespace: new(gwv1.Namespace("certs"))},
	}}
	s.apply(source.Batch{Set: []source.Object{gw}})
	check := func(when string, shown bool, text string) {
		t.Helper()
		s.p.Engine.View(func(c *flow.Ctx) {
			node, _ := flow.Get(c, s.p.Graph.Gateways, object.Name{Namespace: gw.Namespace, Name: gw.Name})
			if node.ClientCertificate.IsZero() == shown || !strings.Contains(node.ResolvedRefs.Message, text) {
				t.Errorf("%s: %q is shown; %s", when, node.ClientCertificate, node.ResolvedRefs.Message)
			}
		})
	}
	pair := certs.For("a.example")
	s.store(pair, pair)
	check("good", true, "All references are resolved")
	s.store(pair, certs.For("a.example"))
	check("broken", true, "stays in force, and expires at "+stamp(pair.Leaf.NotAfter))
	s.store(pair, pair)
	s.remove(kind.Secret, s.secret)
	check("deleted", false, "does not exist")
}
