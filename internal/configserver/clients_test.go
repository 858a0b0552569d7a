package configserver

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestClients protects objects of one client from another: each is known by its token or its certificate alone, and has
// its own rights.
func TestClients(t *testing.T) {
	a := Access{ClientsFile: filepath.Join(t.TempDir(), "clients.yaml"), Rights: Rights{Secrets: true}, Anybody: true, Certificate: true}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(a.ClientsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("clients:\n- {name: west, token: one, namespaces: [west], statuses: true}\n- {name: all, certificate: all.test, secrets: true}\n")
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	if secrets, statuses := a.Wants(); !secrets || !statuses {
		t.Errorf("secrets %t, statuses %t are wanted", secrets, statuses)
	}
	west, err := a.admit(nil, "one")
	if err != nil || west.Name != "west" {
		t.Fatalf("%+v %v", west, err)
	}
	all, err := a.admit(&x509.Certificate{DNSNames: []string{"all.test"}}, "")
	if err != nil || all.Name != "all" {
		t.Fatalf("%+v %v", all, err)
	}
	in := func(ns string) object.Name { return object.Name{Namespace: ns, Name: "x"} }
	for _, c := range []struct {
		what string
		is   bool
		want bool
	}{
		{"west sees its own", west.sees(kind.HTTPRoute, in("west")), true},
		{"west sees others'", west.sees(kind.HTTPRoute, in("east")), false},
		{"west sees its Secrets", west.sees(kind.Secret, in("west")), false},
		{"west sees classes", west.sees(kind.GatewayClass, in("")), true},
		{"west tells of its own", west.tells(kind.HTTPRoute, in("west")), true},
		{"west tells of others'", west.tells(kind.HTTPRoute, in("east")), false},
		{"west tells of classes", west.tells(kind.GatewayClass, in("")), false},
		{"all sees Secrets", all.sees(kind.Secret, in("east")), true},
		{"all tells", all.tells(kind.HTTPRoute, in("east")), false},
	} {
		if c.is != c.want {
			t.Errorf("%s: %t", c.what, c.is)
		}
	}
	for what, token := range map[string]string{"no token": "", "another's": "two"} {
		if c, err := a.admit(nil, token); err == nil {
			t.Errorf("%s is let in as %+v", what, c)
		}
	}
	if c, err := a.admit(&x509.Certificate{DNSNames: []string{"else.test"}}, ""); err == nil {
		t.Errorf("another certificate is let in as %+v", c)
	}
	for text, want := range map[string]string{
		"clients: []": "it has no client",
		"clients:\n- {name: a, token: verysecret, x: 1}":         "it is not a list of clients",
		"clients:\n- {name: a}":                                  "name one of them",
		"clients:\n- {name: a, token: b, certificate: c}":        "name one of them",
		"clients:\n- {name: a, token: b, namespaces: []}":        "namespaces is empty",
		"clients:\n- {token: b}":                                 "name is empty",
		"clients:\n- {name: a, token: b}\n- {name: a, token: c}": "two clients of the name a",
		"clients:\n- {name: a, token: b}\n- {name: c, token: b}": "known by the same as a",
		"clients:\n- {name: a, token: b, statuses: true}\n- {name: c, token: d, statuses: true, namespaces: [x]}":                     "statuses of the same objects",
		"clients:\n- {name: a, token: b, statuses: true, namespaces: [x, y]}\n- {name: c, token: d, statuses: true, namespaces: [y]}": "statuses of the same objects",
	} {
		write(text)
		err := a.Check()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if c, err := a.admit(nil, "b"); err == nil || status.Convert(err).Message() != "the config server can't read its clients" {
			t.Errorf("%s: %+v %v", text, c, err)
		}
	}
}
