package translate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Secret takes certificate and key out of a Secret; name is ns/name. It is nil
// where one of them is missing. Whether they fit is checked with the reference.
func Secret(name string, s *corev1.Secret) *ir.Secret {
	certificate, key := s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 || len(key) == 0 {
		return nil
	}
	return &ir.Secret{Name: name, Certificate: string(certificate), Key: ir.Sensitive(key)}
}
