package translate

import (
	"math"
	"net/http"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	portHTTP  = 80
	portHTTPS = 443
)

// redirect makes a template: a port of 0 is still to be derived, by redirectPort.
func (t *translation) redirect(at position, f *gwv1.HTTPRequestRedirectFilter) *ir.Redirect {
	r := &ir.Redirect{Status: http.StatusFound}
	if f.Scheme != nil {
		r.Scheme = *f.Scheme
		if r.Scheme != "http" && r.Scheme != "https" {
			field := at.field("requestRedirect.scheme")
			t.refuse(field, condition.UnknownValue(field, r.Scheme, "http", "https"))
		}
	}
	if f.Hostname != nil {
		r.Hostname = t.hostname(at, "requestRedirect.hostname", string(*f.Hostname))
	}
	if f.Port != nil {
		if *f.Port < 1 || *f.Port > math.MaxUint16 {
			field := at.field("requestRedirect.port")
			t.refuse(field, condition.OutOfRange(field, int64(*f.Port), 1, math.MaxUint16))
		}
		r.Port = uint16(*f.Port)
	}
	if f.Path != nil {
		// A Location may have a query, so what replaces the path may.
		r.Path = t.pathModifier(at, "requestRedirect.path", f.Path, "#")
	}
	if f.StatusCode != nil {
		switch *f.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
			http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			r.Status = uint32(*f.StatusCode)
		default:
			field := at.field("requestRedirect.statusCode")
			t.refuse(field, condition.UnsupportedStatus(field, *f.StatusCode, "301, 302, 303, 307, 308"))
		}
	}
	return r
}

// redirectPort is the port to show in a Location; 0 for none. The specification
// wants the one that is given, else the well-known one of the given scheme, else
// the listener's, and none where it is the scheme's own.
//
// Where the Gateway's ports are shifted, the ports in its routes are shifted with
// them: they are written for the listeners as the manifests have them.
func (in *HostInput) redirectPort(r *ir.Redirect) uint16 {
	usual := uint16(portHTTP)
	if r.Scheme == "https" || r.Scheme == "" && in.HTTPS {
		usual = portHTTPS
	}
	port := in.Port
	switch {
	case r.Port != 0:
		port = in.shifted(r.Port)
	case r.Scheme != "":
		port = in.shifted(usual)
	}
	if port == usual {
		return 0
	}
	return port
}

func (in *HostInput) shifted(port uint16) uint16 {
	if p := int(port) + in.Offset; p > 0 && p <= math.MaxUint16 {
		return uint16(p)
	}
	return port
}
