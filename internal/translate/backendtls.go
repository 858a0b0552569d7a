package translate

import (
	"io"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// encryptedMark ends the part of a backend's name before the hash where the backend
// is spoken to over TLS.
const encryptedMark = "+tls"

// Encrypted reports whether the backend of a name is spoken to over TLS.
func Encrypted(backend string) bool {
	rest, _, _ := strings.Cut(backend, "#")
	return strings.HasSuffix(rest, encryptedMark)
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

// hashBackendTLS adds what makes one TLS different from another to a backend's hash.
func hashBackendTLS(w io.Writer, t *topology.BackendTLS) {
	if t == nil {
		return
	}
	tls := backendTLS(t)
	for _, text := range []string{tls.ServerName, tls.Authorities} {
		_, _ = io.WriteString(w, text+"\x00")
	}
	for _, n := range tls.Names {
		_, _ = io.WriteString(w, n.DNS+"\x00"+n.URI+"\x00")
	}
}
