package schema

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validTrustBundleName allows the colons that stand between a signer's name and
// the rest of the name of a bundle that belongs to a signer.
func validTrustBundleName(name string, prefix bool) []string {
	return validation.NameIsDNSSubdomain(name[strings.LastIndex(name, ":")+1:], prefix)
}

// finishClusterTrustBundle applies the API server's rules for names and signers.
// What the bundle holds is judged where it is used.
func finishClusterTrustBundle(bundle *certificatesv1.ClusterTrustBundle) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if bundle.Spec.TrustBundle == "" {
		errs = append(errs, field.Required(spec.Child("trustBundle"), "it holds the authorities' certificates as PEM"))
	}
	prefix := strings.ReplaceAll(bundle.Spec.SignerName, "/", ":") + ":"
	switch {
	case bundle.Spec.SignerName == "" && strings.Contains(bundle.Name, ":"):
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), bundle.Name, "a name with a colon belongs to a signer: set spec.signerName, or name the bundle without colons"))
	case bundle.Spec.SignerName != "" && !strings.HasPrefix(bundle.Name, prefix):
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), bundle.Name, "the name must begin with the signer's, "+prefix))
	}
	return errs
}
