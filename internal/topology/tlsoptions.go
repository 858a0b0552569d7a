package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// ourOptions begins the keys of options of TLS that are ours to read. All others are
// for other implementations.
const ourOptions = "gatehouse.dev/"

// tlsOptions are our keys of tls.options with what reads their values. An error says
// what to write instead.
var tlsOptions = map[gwv1.AnnotationKey]func(d *draft, value string, e edge) error{
	http3Option:                    readHTTP3,
	ourOptions + "min-tls-version": readMinVersion,
}

// readTLSOptions reads tls.options. A misspelt option refuses the listener: it may be
// one that keeps somebody out.
func (d *draft) readTLSOptions(e edge) {
	if d.spec.TLS == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(d.spec.TLS.Options)) {
		if !strings.HasPrefix(string(key), ourOptions) {
			continue
		}
		field := fmt.Sprintf("tls.options[%s]", key)
		read, ok := tlsOptions[key]
		if !ok {
			d.refuse(condition.ListenerUnsupportedValue(field, "there is no such option; the options are "+optionNames()))
			continue
		}
		if err := read(d, string(d.spec.TLS.Options[key]), e); err != nil {
			d.refuse(condition.ListenerUnsupportedValue(field, err.Error()))
		}
	}
}

func optionNames() string {
	names := make([]string, 0, len(tlsOptions))
	for _, key := range slices.Sorted(maps.Keys(tlsOptions)) {
		names = append(names, string(key))
	}
	return strings.Join(names, ", ")
}

func readMinVersion(d *draft, value string, _ edge) error {
	switch version := ir.TLSVersion(value); {
	case !d.terminatesTLS():
		return errors.New("only listeners that terminate TLS have a version; remove it")
	case version != ir.TLS12 && version != ir.TLS13:
		return fmt.Errorf("%q is not supported; use %q or %q", value, ir.TLS12, ir.TLS13)
	default:
		d.MinTLSVersion = version
		return nil
	}
}

// terminatesTLS reports whether the listener needs certificates.
func (d *draft) terminatesTLS() bool { return d.family == encrypted && !d.Passthrough }
