//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/template"
)

// The shared Gateway, to which most cases attach their routes.
const (
	sharedNamespace = "e2e"
	sharedGateway   = "shared"
)

// bindings are the values that a case's template expressions stand for.
type bindings struct {
	t         testing.TB
	name      string            // of the case
	shared    string            // address of the shared Gateway
	addresses map[string]string // of the case's own Gateways
	refusing  map[string]int    // ports that refuse connections
}

func newBindings(t testing.TB, name, shared string) *bindings {
	return &bindings{t: t, name: name, shared: shared, addresses: map[string]string{}, refusing: map[string]int{}}
}

// expand evaluates the expressions of text; README.md documents them.
func (b *bindings) expand(file, text string) (string, error) {
	tmpl, err := template.New(file).Option("missingkey=error").Funcs(template.FuncMap{
		"ns":            b.namespace,
		"host":          b.host,
		"shared":        func() string { return fmt.Sprintf("{name: %s, namespace: %s}", sharedGateway, sharedNamespace) },
		"sharedAddress": func() string { return b.shared },
		"address":       b.address,
		"offset":        func(port int) int { return port + portOffset },
		"backends":      b.backends,
		"backendsIn":    b.backendsIn,
		"grpcBackends":  b.servers(grpcBackend),
		"authBackends":  b.servers(authBackend),
		"pickers":       b.serversFor(pickerBackend),
		"cookieTo":      cookieTo,
		"endedCookieTo": endedCookieTo,
		"headerTo":      headerTo,
		"tcpBackends":   b.servers(tcpBackend),
		"udpBackends":   b.servers(udpBackend),
		"tlsBackends":   b.servers(tlsBackend),
		"httpsBackends": b.serversFor(httpsBackend),
		"mtlsBackends":  b.serversFor(mtlsBackend),
		"port":          func(name string) (int, error) { return backendPort(name, 0) },
		"httpsPort":     httpsPort,
		"port6":         func(name string) (int, error) { return backendPort(name, 1) },
		"refusing":      b.refusingPort,
		"secret":        b.secret,
		"rsaSecret":     b.rsaSecret,
		"clientSecret":  b.clientSecret,
		"ca":            b.ca(testAuthority),
		"clientCA":      b.ca(clientAuthority),
		"otherCA":       b.ca(otherAuthority),
		"clientCAIn":    func(namespace, name string) string { return caManifest(clientAuthority, namespace, name) },
		"trustBundle":   trustBundle,
		"badSecret":     b.badSecret,
		"repeat":        strings.Repeat,
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := tmpl.Execute(&out, nil); err != nil {
		return "", err
	}
	return out.String(), nil
}

// namespace is the case's own namespace, or a further one with a suffix.
func (b *bindings) namespace(suffix ...string) string {
	return strings.Join(append([]string{b.name}, suffix...), "-")
}

// host is the case's own host name, or one below it.
func (b *bindings) host(label ...string) string {
	return strings.Join(append(label, b.name+".test"), ".")
}

// address is the address of one of the case's own Gateways.
func (b *bindings) address(gateway ...string) string {
	key := strings.Join(gateway, "-")
	if _, ok := b.addresses[key]; !ok {
		b.addresses[key] = newAddress()
	}
	return b.addresses[key]
}

// target is the address to which requests go when they don't say.
func (b *bindings) target() string {
	if own, ok := b.addresses[""]; ok {
		return own
	}
	return b.shared
}

func (b *bindings) backends(names ...string) (string, error) {
	return b.backendsIn(b.name, names...)
}

func (b *bindings) backendsIn(namespace string, names ...string) (string, error) {
	return manifests(httpBackend, namespace, "", names)
}

// servers makes the function that adds backends of a kind.
func (b *bindings) servers(kind backendKind) func(names ...string) (string, error) {
	return func(names ...string) (string, error) {
		return manifests(kind, b.name, b.host(), names)
	}
}

// serversFor is servers for kinds whose certificate is for a host of the case's choice.
func (b *bindings) serversFor(kind backendKind) func(host string, names ...string) (string, error) {
	return func(host string, names ...string) (string, error) {
		if len(names) == 0 {
			return "", errors.New("first the host of the certificate, then the names of the backends")
		}
		return manifests(kind, b.name, host, names)
	}
}

func manifests(kind backendKind, namespace, host string, names []string) (string, error) {
	var out strings.Builder
	for _, name := range names {
		manifest, err := kind.manifest(namespace, name, name, host)
		if err != nil {
			return "", err
		}
		out.WriteString(manifest)
	}
	return out.String(), nil
}

func (b *bindings) refusingPort(name string) int {
	if _, ok := b.refusing[name]; !ok {
		b.refusing[name] = refusingPort(b.t)
	}
	return b.refusing[name]
}

func (b *bindings) secret(name string, hosts ...string) (string, error) {
	return secretManifest(b.name, name, "", hosts...)
}

func (b *bindings) badSecret(flaw, name string, hosts ...string) (string, error) {
	return secretManifest(b.name, name, flaw, hosts...)
}

func (b *bindings) rsaSecret(name string, hosts ...string) (string, error) {
	return rsaSecretManifest(b.name, name, hosts...)
}

func (b *bindings) clientSecret(name, subject string) (string, error) {
	return issueClient(clientAuthority, subject).manifest(b.name, name), nil
}

// ca makes the function that adds a ConfigMap with an authority.
func (b *bindings) ca(by authority) func(name string) string {
	return func(name string) string { return caManifest(by, b.name, name) }
}
