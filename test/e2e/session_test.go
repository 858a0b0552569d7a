//go:build linux

package e2e

import (
	"encoding/base64"
	"net"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// cookieTo is the value of the cookie by which Envoy finds a backend again.
func cookieTo(name string) (string, error) { return sessionCookie(name, 0) }

// endedCookieTo is one whose session ended in 1970.
func endedCookieTo(name string) (string, error) { return sessionCookie(name, 1) }

// headerTo is the value of the header by which Envoy finds a backend again.
func headerTo(name string) (string, error) {
	address, err := sessionAddress(name)
	return base64.StdEncoding.EncodeToString([]byte(address)), err
}

func sessionCookie(name string, expires uint64) (string, error) {
	address, err := sessionAddress(name)
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, address)
	if expires > 0 {
		b = protowire.AppendTag(b, 2, protowire.VarintType)
		b = protowire.AppendVarint(b, expires)
	}
	return base64.StdEncoding.EncodeToString(b), err
}

func sessionAddress(name string) (string, error) {
	port, err := backendPort(name, 0)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
