package topology

import (
	"errors"
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// defaultHTTP3 is what a listener gets that doesn't say whether it wants HTTP/3: the
// default gives way where it can't be had.
func (d *draft) defaultHTTP3(o Options) {
	d.HTTP3 = o.HTTP3 && d.Protocol == gwv1.HTTPSProtocolType && !o.ProxyProtocol
}

// readHTTP3 reads the option for HTTP/3. Whoever asks for it where it can't be had is
// told so.
func readHTTP3(d *draft, value string, o Options) error {
	switch {
	case d.Protocol != gwv1.HTTPSProtocolType:
		return errors.New("it is for listeners of protocol HTTPS; remove it")
	case value != "true" && value != "false":
		return fmt.Errorf("%q is not supported; use \"true\" or \"false\"", value)
	case value == "true" && o.ProxyProtocol:
		return errors.New("it can't be had together with --proxy-protocol, which there is no way to speak over UDP; remove one of the two")
	}
	d.HTTP3 = value == "true"
	return nil
}
