package proxy

import "os"

// authorityFiles are where systems keep the certificates of the authorities that
// they trust, the most common first; the same places that Go looks at.
var authorityFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Alpine; Envoy's images
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS, RHEL 7
	"/etc/ssl/cert.pem",                                 // Alpine, macOS, the BSDs
}

// DefaultAuthorities is where most systems keep the certificates of the authorities
// that they trust.
const DefaultAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// Authorities returns the path of the file with the certificates of the authorities
// that this host trusts; empty where there is none. SSL_CERT_FILE names it, as for
// other programs.
func Authorities() string {
	if path := os.Getenv("SSL_CERT_FILE"); path != "" {
		return path
	}
	for _, path := range authorityFiles {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return path
		}
	}
	return ""
}
