package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// trustDomain is the authority of every name. Each installation has roots of its
// own, so names need not distinguish installations.
const trustDomain = "gatehouse.dev"

// Role is what a pod of a Gateway's fleet is.
type Role string

const (
	// Proxy is given configuration, secrets included.
	Proxy Role = "pod"
	// Limits counts requests for the proxies, and is given nothing but a certificate.
	Limits Role = "limits"
)

// ErrNoProxy is returned for a certificate that is not a proxy's.
var ErrNoProxy = errors.New("the certificate is not one of a proxy")

// ErrNoController is returned for a certificate that is not a controller's.
var ErrNoController = errors.New("the certificate is not one of a controller")

// memberURI names a pod of a Gateway's fleet: spiffe://gatehouse.dev/ns/NS/gateway/NAME/ROLE/POD.
func memberURI(gateway object.Name, role Role, pod string) *url.URL {
	return spiffe("ns", gateway.Namespace, "gateway", gateway.Name, string(role), pod)
}

// controllerURI names a controller: spiffe://gatehouse.dev/controller/POD.
func controllerURI(pod string) *url.URL { return spiffe("controller", pod) }

func spiffe(segments ...string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: trustDomain, Path: "/" + strings.Join(segments, "/")}
}

// Gateway returns the Gateway and the pod that the peer's certificate names, if that is a
// proxy. The certificate must have been verified, by the handshake.
func Gateway(cs tls.ConnectionState) (gateway object.Name, pod string, err error) {
	segments, err := peer(cs)
	if err != nil {
		return object.Name{}, "", err
	}
	if len(segments) != 6 || segments[0] != "ns" || segments[2] != "gateway" || segments[4] != string(Proxy) {
		return object.Name{}, "", ErrNoProxy
	}
	return object.Name{Namespace: segments[1], Name: segments[3]}, segments[5], nil
}

// Controller returns the pod of the controller that the peer's certificate names.
// The certificate must have been verified, by the handshake.
func Controller(cs tls.ConnectionState) (pod string, err error) {
	segments, err := peer(cs)
	if err != nil {
		return "", err
	}
	if len(segments) != 2 || segments[0] != "controller" {
		return "", ErrNoController
	}
	return segments[1], nil
}

func peer(cs tls.ConnectionState) (segments []string, err error) {
	if len(cs.VerifiedChains) == 0 {
		return nil, errors.New("there is no verified certificate")
	}
	return segmentsOf(cs.VerifiedChains[0][0])
}

// segmentsOf splits a certificate's name, which must be written as spiffe writes it. None
// of the segments is empty.
func segmentsOf(cert *x509.Certificate) ([]string, error) {
	if len(cert.URIs) != 1 {
		return nil, fmt.Errorf("the certificate has %d names, not one", len(cert.URIs))
	}
	u := cert.URIs[0]
	path, rooted := strings.CutPrefix(u.Path, "/")
	segments := strings.Split(path, "/")
	if !rooted || *u != *spiffe(segments...) {
		return nil, fmt.Errorf("the certificate's name %q is not one of ours", u)
	}
	if slices.Contains(segments, "") {
		return nil, fmt.Errorf("the certificate's name %q has an empty part", u)
	}
	return segments, nil
}
