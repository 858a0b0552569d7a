package cluster

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// needAttention returns what a replica's metrics say of objects that need attention.
func (r *replica) needAttention() (lines []string) {
	page := httptest.NewRecorder()
	r.metrics().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range bytes.Lines(page.Body.Bytes()) {
		if bytes.HasPrefix(line, []byte("gatehouse_objects_need_attention{")) {
			lines = append(lines, strings.TrimSpace(string(line)))
		}
	}
	return lines
}

// A Secret that has not been read yet is not missing: neither at the start nor while a
// replica leads does an alert fire for it. Only the replica that leads counts. A changed
// configuration that can't be used is counted, too: what is in force is not what people see.
func TestUnreadContentsAreNoTrouble(t *testing.T) {
	in := install(t)
	for _, name := range []string{"early", "late"} {
		pair := certs.For(name + ".test")
		if err := in.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"tls.crt": pair.PEM(), "tls.key": pair.KeyPEM()},
		}); err != nil {
			t.Fatal(err)
		}
	}
	tls := func(secret string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
			listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: ` + secret + `}]}}]}}`
	}
	in.apply(tls("early"))
	in.withholds = "/secrets/early"
	r := in.launch("gatehouse-system")
	in.until("the Secret is asked for", func() bool { return r.withheld.Load() > 0 })
	in.until("the Gateway is known", func() bool { return len(r.pipeline.Objects()) > 0 })
	if got := r.troubled.Counts(); len(got) > 0 {
		t.Errorf("before all is read, these are counted: %v", got)
	}
	close(r.released)
	in.until("the replica leads", func() bool { return r.leads.Load() != nil })
	settled := r.needAttention()

	r.released = make(chan struct{})
	release := r.withhold("/secrets/late")
	in.apply(tls("late"))
	in.until("the other Secret is asked for", func() bool { return r.withheld.Load() > 0 })
	if got := r.needAttention(); strings.Contains(strings.Join(got, "\n"), "InvalidCertificateRef") {
		t.Errorf("a Secret that is being read is counted: %s; before: %s", got, settled)
	}
	release()

	in.apply(tls("none"))
	in.until("the Secret that doesn't exist is counted", func() bool {
		return strings.Contains(strings.Join(r.needAttention(), "\n"), "InvalidCertificateRef")
	})
	const refused = `gatehouse_objects_need_attention{kind="Configuration",reason="Invalid"} 1`
	if got := r.needAttention(); slices.Contains(got, refused) {
		t.Errorf("a configuration that is used is counted: %s", got)
	}
	in.refused.Store(true)
	if got := r.needAttention(); !slices.Contains(got, refused) {
		t.Errorf("a changed configuration that isn't used is not counted: %s", got)
	}
	follower := in.start()
	if got := follower.needAttention(); len(got) > 0 {
		t.Errorf("a replica that doesn't lead counts: %s", got)
	}
}
