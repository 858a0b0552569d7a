package auth

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// certificates reads whose certificates are accepted; nil where nobody's are. Names that can't be
// read are left out, and where no others are left nobody's are: an empty list would be for all.
func (r *reader) certificates(name string, in *v1alpha1.ClientCertificate) *ir.ClientCertificates {
	out := &ir.ClientCertificates{Name: name, Header: strings.ToLower(in.IdentityHeader)}
	fine := r.fitsIdentity(".clientCertificate", out.Header)
	for i, n := range in.SubjectAltNames {
		field := fmt.Sprintf(".clientCertificate.subjectAltNames[%d]", i)
		host, uri := strings.ToLower(ptr.Deref(n.DNS, "")), ptr.Deref(n.URI, "")
		switch {
		case (host == "") == (uri == ""):
			r.Problem(field, "needs exactly one of dns and uri")
		case strings.Contains(strings.TrimPrefix(host, "*."), "*"):
			r.Problem(field+".dns", "is %q; an asterisk stands at the beginning, for one label", host)
		case strings.ContainsFunc(host+uri, unicode.IsControl):
			r.Problem(field, "has control characters, which no certificate is accepted with")
		case host != "":
			out.DNS = append(out.DNS, host)
		default:
			out.URIs = append(out.URIs, uri)
		}
	}
	if !fine || len(in.SubjectAltNames) > 0 && len(out.DNS)+len(out.URIs) == 0 {
		return nil
	}
	return out
}

// NeedsCertificates reports whether credentials of a policy are certificates of clients.
func (p *Policy) NeedsCertificates() bool {
	return slices.ContainsFunc(p.Asks, func(r policy.Rule[Rule]) bool { return r.Value.Certificates != nil })
}
