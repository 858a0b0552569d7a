package parameters

import (
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// These bound what envoy.bootstrap costs whoever checks it, which every replica does.
// Merging, printing and parsing take time by the square of the depth: 1 MB of nested
// objects has taken seconds and a gigabyte.
const (
	maxBootstrap      = 64 << 10 // bytes of JSON
	maxBootstrapDepth = 64       // objects and lists in each other; Envoy's own have a dozen
)

// checkBootstrap finds what Envoy would refuse of a bootstrap configuration with these
// additions, which are JSON.
func checkBootstrap(additions []byte) error {
	if len(additions) > maxBootstrap {
		return fmt.Errorf("it has %d bytes, over the limit of %d; shorten it", len(additions), maxBootstrap)
	}
	if deep := depth(additions); deep > maxBootstrapDepth {
		return fmt.Errorf("it has %d objects and lists in each other, over the limit of %d; remove some", deep, maxBootstrapDepth)
	}
	whole, err := proxy.Bootstrap(proxy.BootstrapOptions{
		Gateway: object.Name{Namespace: "namespace", Name: "name"}, XDSSocket: "/xds", AdminSocket: "/admin", Additions: additions,
	})
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil { // it isn't about that Gateway
			err = cause
		}
		return err
	}
	return envoy.CheckBootstrap(whole)
}

// depth returns how many objects and lists of a JSON text are in each other.
func depth(text []byte) (deepest int) {
	now, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
