package identity_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
)

// attackFromItsAddress protects a pod from others that come from its address, as all do
// whose addresses are translated: it gets its certificates whatever they are refused.
func (c *cluster) attackFromItsAddress(t *testing.T, h *controller, a, b *corev1.Pod) {
	h = h.in(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	// untilTooMany sends bad tokens until they are refused without a look at them.
	untilTooMany := func(token func(i int) string) {
		t.Helper()
		for i := range 5000 {
			switch code, answer := h.asker("127.0.0.1").ask(token(i)); code {
			case 401:
			case 429:
				return
			default:
				t.Fatalf("a bad token gets %d %s", code, answer)
			}
		}
		t.Error("nothing is too many")
	}
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	stuck := forge(t, key, c.claims(b, "b-sa", time.Now().Add(time.Hour)))

	untilTooMany(func(int) string { return "" })
	if code, answer := h.asker("127.0.0.1").ask(good); code != 200 {
		t.Errorf("beside one without a token: %d %s", code, answer)
	}
	untilTooMany(func(int) string { return stuck })
	if code, answer := h.asker("127.0.0.1").ask(good); code != 200 {
		t.Errorf("beside a pod with a token that is not valid: %d %s", code, answer)
	}
	untilTooMany(func(i int) string {
		made := b.DeepCopy()
		made.UID = types.UID(fmt.Sprintf("made-up-%d", i))
		return forge(t, key, c.claims(made, "b-sa", time.Now().Add(time.Hour)))
	})
	known := h.asker("127.0.0.1")
	known.tls.Certificates = []tls.Certificate{c.certificate(t, h.authority, "a", "a-1")}
	if code, answer := known.ask(good); code != 200 {
		t.Errorf("with its certificate, beside pods that are made up: %d %s", code, answer)
	}
}
