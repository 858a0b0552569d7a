package condition

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Noted adds to a condition's message what is good to know and makes it neither
// true nor false.
func Noted(c metav1.Condition, notes ...string) metav1.Condition {
	for _, n := range notes {
		c.Message += "; " + n
	}
	return c
}

// NoteCertificateNames says that no certificate of a listener is for a host that it
// takes.
func NoteCertificateNames(hostname string, names []string) string {
	have := "name no host"
	if len(names) > 0 {
		have = "are for " + join(names, ", ")
	}
	return fmt.Sprintf("clients will refuse the certificates for %q, since they %s", hostname, have)
}

// NoteCertificateExpires says until when a certificate is valid, where it should
// have been renewed by now.
func NoteCertificateExpires(secret string, at time.Time) string {
	return fmt.Sprintf("the certificate in Secret %s expires at %s; renew it", secret, at.UTC().Format(time.RFC3339))
}
