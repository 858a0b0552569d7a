package identity_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// forge signs a token as the API server would, with any key.
func forge(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	encode := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	id := sha256.Sum256(der)
	text := encode(map[string]string{"alg": "RS256", "typ": "JWT", "kid": base64.RawURLEncoding.EncodeToString(id[:])}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (c *cluster) claims(pod *corev1.Pod, account string, expiry time.Time) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": c.Issuer, "aud": []string{identity.Audience}, "sub": "system:serviceaccount:" + pod.Namespace + ":" + account,
		"iat": now.Add(-time.Hour).Unix(), "nbf": now.Add(-time.Hour).Unix(), "exp": expiry.Unix(),
		"kubernetes.io": map[string]any{
			"namespace":      pod.Namespace,
			"serviceaccount": map[string]any{"name": account, "uid": "00000000-0000-0000-0000-000000000000"},
			"pod":            map[string]any{"name": pod.Name, "uid": string(pod.UID)},
		},
	}
}

func (c *cluster) attackByToken(t *testing.T, h *controller, a, b, stranger *corev1.Pod) {
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	deleted := c.pod(t, "ns", "a-deleted", "a-sa", "a", "127.0.0.1")
	deletedToken := c.token(t, "ns", "a-sa", deleted, identity.Audience)
	c.delete(t, deleted)
	replaced := c.pod(t, "ns", "a-replaced", "a-sa", "a", "127.0.0.1")
	replacedToken := c.token(t, "ns", "a-sa", replaced, identity.Audience)
	c.delete(t, replaced)
	c.pod(t, "ns", "a-replaced", "a-sa", "a", "127.0.0.1")
	ended := c.pod(t, "ns", "a-ended", "a-sa", "a", "127.0.0.1")
	ended.Status.Phase = corev1.PodSucceeded
	if err := c.client.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	disguised := c.pod(t, "ns", "a-disguised", "a-sa", "b", "127.0.0.1")
	elsewhere := c.pod(t, "other", "a-1", "a-sa", "a", "127.0.0.1")
	gone := c.pod(t, "ns", "gone-1", "gone-sa", "gone", "127.0.0.1")
	unlabelled := c.pod(t, "ns", "a-plain", "a-sa", "", "127.0.0.1")
	foreign := c.pod(t, "ns", "a-annotated", "a-sa", "a", "127.0.0.1")
	foreign.Annotations = map[string]string{"gatehouse.dev/gateway": "third/a"}
	if err := c.client.Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	says := func(pod *corev1.Pod, gateway string) *corev1.Pod {
		pod.Annotations = map[string]string{"gatehouse.dev/gateway": gateway}
		if err := c.client.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	// The fleets of namespace tenant are in namespace fleets.
	inFleets := says(c.pod(t, "fleets", "tenant-a-1", "tenant-a-sa", "a", "127.0.0.1"), "tenant/a")
	notFleet := says(c.pod(t, "fleets", "tenant-a-2", "another-sa", "a", "127.0.0.1"), "tenant/a")
	ofTenant := says(c.pod(t, "tenant", "tenant-a-1", "tenant-a-sa", "a", "127.0.0.1"), "tenant/a")
	unsaid := c.pod(t, "tenant", "tenant-a-2", "tenant-a-sa", "a", "127.0.0.1")
	disguisedFormer := c.pod(t, "ns", "b-former", "a-former-sa", "b", "127.0.0.1")
	goneFormer := c.pod(t, "ns", "gone-former", "a-former-sa", "gone", "127.0.0.1")
	disguisedLimits := c.pod(t, "ns", "b-limits", "a-limits-sa", "b", "127.0.0.1")
	unborn := c.pod(t, "ns", "a-unborn", "a-sa", "a")

	token := func(pod *corev1.Pod) string {
		return c.token(t, pod.Namespace, pod.Spec.ServiceAccountName, pod, identity.Audience)
	}
	soon := time.Now().Add(time.Hour)
	good := token(a)
	for i, tc := range []struct {
		name, token, from string
		code              int
		reason            string
	}{
		{"no token", "", "", 401, "no-token"},
		{"no JSON web token", "nonsense", "", 401, "malformed-token"},
		{"no JSON in the token", "a.b.c", "", 401, "malformed-token"},
		{"expired", forge(t, c.ServiceAccountKey, c.claims(a, "a-sa", time.Now().Add(-time.Minute))), "", 401, "expired-token"},
		{"for ever", forge(t, otherKey, c.claims(a, "a-sa", time.Unix(1<<40, 0))), "", 401, "invalid-token"},
		{"signed by another key", forge(t, otherKey, c.claims(a, "a-sa", soon)), "", 401, "invalid-token"},
		{"altered", alter(good), "", 401, "invalid-token"},
		{"for the API server", c.token(t, "ns", "a-sa", a), "", 401, "foreign-audience"},
		{"for another audience", c.token(t, "ns", "a-sa", a, "somebody"), "", 401, "foreign-audience"},
		{"not bound to a pod", c.token(t, "ns", "a-sa", nil, identity.Audience), "", 403, "unbound-token"},
		{"of a foreign ServiceAccount", token(stranger), "", 403, "foreign-pod"},
		{"of A's ServiceAccount in a pod labelled as B's", token(disguised), "", 403, "foreign-pod"},
		{"of A's former ServiceAccount in a pod labelled as B's", token(disguisedFormer), "", 403, "foreign-pod"},
		{"of A's former ServiceAccount in a pod labelled as of a Gateway that is gone", token(goneFormer), "", 403, "foreign-pod"},
		{"of what counts for A in a pod labelled as B's", token(disguisedLimits), "", 403, "foreign-pod"},
		{"of another namespace", token(elsewhere), "", 403, "foreign-pod"},
		{"of a pod that claims another namespace's Gateway", token(foreign), "", 403, "foreign-pod"},
		{"of a tenant's ServiceAccount of the name of one in the namespace of fleets", token(ofTenant), "", 403, "foreign-pod"},
		{"of a tenant's pod that is only labelled", token(unsaid), "", 403, "foreign-pod"},
		{"of another ServiceAccount in the namespace of fleets", token(notFleet), "", 403, "foreign-pod"},
		{"of a pod without a label", token(unlabelled), "", 403, "foreign-pod"},
		{"of a Gateway that is gone", token(gone), "", 403, "foreign-pod"},
		{"of a deleted pod", deletedToken, "", 401, "invalid-token"},
		{"of the predecessor of a pod", replacedToken, "", 401, "invalid-token"},
		{"of a pod that has ended", token(ended), "", 403, "pod-gone"},
		{"of a pod without an address", token(unborn), "", 403, "pod-no-address"},
		{"replayed from another address", good, "127.0.0.2", 403, "foreign-address"},
		{"of B, replayed by A", token(b), "127.0.0.3", 403, "foreign-address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := h.in(t)
			from := tc.from
			if from == "" {
				from = fmt.Sprintf("127.0.2.%d", i) // none asks too often
			}
			issued := h.counted("gatehouse_identity_certificates_total", "")
			h.expectRefusal(apiRefusals, tc.reason, func() {
				code, answer := h.asker(from).ask(tc.token)
				if code != tc.code || !strings.Contains(string(answer), `"error"`) {
					t.Errorf("got %d %s, want %d", code, answer, tc.code)
				}
			})
			if h.counted("gatehouse_identity_certificates_total", "") != issued {
				t.Error("a certificate was issued")
			}
			if len(tc.token) > 20 && strings.Contains(h.log.String(), tc.token[len(tc.token)-20:]) {
				t.Error("the log has the token")
			}
		})
	}

	t.Run("of a fleet in another namespace than its Gateway", func(t *testing.T) {
		if code, answer := h.in(t).asker("127.0.0.1").ask(token(inFleets)); code != 200 {
			t.Errorf("it is refused: %d %s", code, answer)
		}
		pods := identity.NewPods(identity.PodsOptions{Client: c.client, Namespaces: namespaces})
		gateway, here := object.Name{Namespace: "tenant", Name: "a"}, netip.MustParseAddr("127.0.0.1")
		for name, admit := range map[string]func(context.Context, object.Name, string, netip.Addr) error{"once": pods.Admit, "again": pods.Again()} {
			if err := admit(t.Context(), gateway, inFleets.Name, here); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if admit(t.Context(), gateway, "tenant-a-2", netip.MustParseAddr("127.0.0.9")) == nil {
				t.Errorf("%s: another address is let in", name)
			}
			if admit(t.Context(), object.Name{Namespace: "fleets", Name: "a"}, inFleets.Name, here) == nil {
				t.Errorf("%s: it is let in as of a Gateway of the namespace that it is in", name)
			}
		}
	})

	// A proxy of the class that a Gateway had before serves until it has moved.
	t.Run("of A's former fleet", func(t *testing.T) {
		former := c.pod(t, "ns", "a-former", "a-former-sa", "a", "127.0.0.1")
		if code, answer := h.in(t).asker("127.0.0.1").ask(token(former)); code != 200 {
			t.Errorf("it is refused: %d %s", code, answer)
		}
	})

	t.Run("of a pod deleted a moment after it was good", func(t *testing.T) {
		h := h.in(t)
		pod := c.pod(t, "ns", "a-late", "a-sa", "a", "127.0.0.1")
		late := token(pod)
		if code, answer := h.asker("127.0.0.1").ask(late); code != 200 {
			t.Fatalf("the good token is refused: %d %s", code, answer)
		}
		c.delete(t, pod)
		// The API server remembers good tokens for some seconds.
		before := h.counted(apiRefusals, "pod-gone") + h.counted(apiRefusals, "invalid-token")
		if code, answer := h.asker("127.0.0.1").ask(late); code != 401 && code != 403 {
			t.Errorf("got %d %s", code, answer)
		}
		if h.counted(apiRefusals, "pod-gone")+h.counted(apiRefusals, "invalid-token") != before+1 {
			t.Error("the refusal is not counted")
		}
	})
}

// alter changes what a token says, and leaves its signature.
func alter(token string) string {
	parts := strings.Split(token, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	parts[1] = base64.RawURLEncoding.EncodeToString(bytes.ReplaceAll(raw, []byte("a-sa"), []byte("b-sa")))
	return strings.Join(parts, ".")
}
