package xds

import (
	"bytes"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// TestHeldSecrets protects keys: of a secret nothing but its name is printed.
func TestHeldSecrets(t *testing.T) {
	t.Parallel()
	body, err := proto.Marshal(&tlsv3.Secret{Name: "cert", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "the key"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := envoy.NewResource(envoy.Secrets, "cert", body)
	h := Loaded{Has: "before", Wanted: r.Version, has: r, wanted: r}
	if err := h.Print(); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{h.Resource, h.WantedResource} {
		if !bytes.Contains(text, []byte("cert")) || bytes.Contains(text, []byte("the key")) {
			t.Errorf("printed: %s", text)
		}
	}
}
