package topology

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// KeptCertificate is the last pair of a Secret that could be used. It stays in force while
// the Secret holds none, and for CertificateGrace after the Secret was deleted. It is kept
// only while some object of ours refers to the Secret and may, and only in memory.
type KeptCertificate struct {
	Pair *Certificate
	// Until is when the pair of a Secret that was deleted is taken away, also if there is
	// one again that holds no pair; zero otherwise.
	Until time.Time
}

// CertificateGrace is how long the pair of a deleted Secret stays in force.
const CertificateGrace = time.Hour

// secretMissing is the Problem of a Certificate whose Secret doesn't exist.
const secretMissing = "the Secret does not exist"

// certificate is what a Secret comes to: what it holds, with what is kept of it where that
// can't be used. It is nil where there is nothing of either.
func (g *Graph) certificate(c *flow.Ctx, name object.Name) *Certificate {
	var out *Certificate
	if secret, ok := flow.Get(c, g.in.Secrets, name); ok {
		if out = readCertificate(name, secret); out.Problem == "" {
			return out
		}
	}
	kept, ok := flow.Get(c, g.in.KeptCertificates, name)
	if !ok {
		return out
	}
	last := *kept.Pair
	last.Problem, last.Until = secretMissing, kept.Until
	if out != nil {
		last.Problem = out.Problem
	}
	return &last
}

// Usable reports whether there is a pair to use, the Secret's own or one that is kept.
func (c *Certificate) Usable() bool { return c.Chain != "" }

// kept adds to what is wrong with the Secret that its last pair stays in force, if it does.
func (c *Certificate) kept(problem metav1.Condition) metav1.Condition {
	if !c.Usable() {
		return problem
	}
	return condition.Noted(problem, condition.NoteCertificateKept(c.Validity.NotAfter, c.Until))
}

// CertificateEnd is when the first certificate of a listener expires; not ok for a listener
// without any.
func (l *Listener) CertificateEnd() (end time.Time, ok bool) {
	for _, v := range l.Validity {
		if !ok || v.NotAfter.Before(end) {
			end, ok = v.NotAfter, true
		}
	}
	return end, ok
}

func sameKeptCertificate(a, b KeptCertificate) bool {
	return a.Pair == b.Pair && a.Until.Equal(b.Until)
}
