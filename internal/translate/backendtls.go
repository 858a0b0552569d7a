package translate

import (
	"encoding/hex"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// encryptedMark stands in a backend's name before the hash of its TLS.
const encryptedMark = "+tls."

// Encrypted reports whether the backend of a name is spoken to over TLS.
func Encrypted(backend string) bool {
	rest, _, _ := strings.Cut(backend, "#")
	return strings.Contains(rest, encryptedMark)
}

// unencrypted returns backends as they are for connections that are passed through
// with the client's own TLS, to which none is added.
func unencrypted(backends []ir.WeightedBackend) []ir.WeightedBackend {
	out := slices.Clone(backends)
	for i := range out {
		before, rest, _ := strings.Cut(out[i].Backend, encryptedMark)
		if _, hash, ok := strings.Cut(rest, "#"); ok {
			out[i].Backend = before + "#" + hash
		}
	}
	return out
}

// backendTLS makes the TLS of a backend; nil for none. A hostname authenticates the
// backend unless there are names that say otherwise.
func backendTLS(t *topology.BackendTLS) *ir.BackendTLS {
	if t == nil {
		return nil
	}
	out := &ir.BackendTLS{ServerName: t.Hostname, Authorities: AuthoritiesName(t.Authorities)}
	for _, san := range t.SubjectAltNames {
		if san.Type == gwv1.URISubjectAltNameType {
			out.Names = append(out.Names, ir.CertificateName{URI: string(san.URI)})
		} else {
			out.Names = append(out.Names, ir.CertificateName{DNS: string(san.Hostname)})
		}
	}
	if len(out.Names) == 0 {
		out.Names = []ir.CertificateName{{DNS: t.Hostname}}
	}
	return out
}

// appendTLS adds what tells one TLS from another to a backend's name.
func appendTLS(name []byte, t *topology.BackendTLS) []byte {
	if t == nil {
		return name
	}
	h := fnv.New32a()
	tls := backendTLS(t)
	for _, text := range []string{tls.ServerName, tls.Authorities} {
		_, _ = io.WriteString(h, text+"\x00")
	}
	for _, n := range tls.Names {
		_, _ = io.WriteString(h, n.DNS+"\x00"+n.URI+"\x00")
	}
	return hex.AppendEncode(append(name, encryptedMark...), h.Sum(nil))
}
