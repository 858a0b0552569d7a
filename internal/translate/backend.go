package translate

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Backend makes the backend of a Service's port.
func Backend(p *topology.ServicePort) *ir.Backend {
	b := &ir.Backend{
		Service:  p.Service,
		Port:     p.Port,
		PortName: p.PortName,
		Protocol: protocol(p),
		DNS:      p.ExternalName,
		TLS:      backendTLS(p.TLS),
		Retry:    p.Retry,
	}
	if b.DNS != "" && p.TargetPort != 0 {
		b.Port = p.TargetPort // there are no slices to say where the port leads
	}
	b.Name = BackendName(p)
	return b
}

// BackendName is the name of the backend of a Service's port: ns/service:port, with
// the use after a slash where it is not HTTP, +tls. with a hash of the TLS where there
// is some, and a hash of all else that makes the backend what it is. Two routes to the
// same port share it; a port that becomes something else gets another one.
func BackendName(p *topology.ServicePort) string {
	h := fnv.New32a()
	for _, part := range [...]string{p.PortName, string(protocol(p)), p.ExternalName, strconv.Itoa(int(p.TargetPort))} {
		_, _ = io.WriteString(h, part)
		_, _ = h.Write([]byte{0})
	}
	if p.Retry != nil {
		_, _ = fmt.Fprintf(h, "retry %+v", *p.Retry)
	}
	b := make([]byte, 0, 64)
	if p.Kind != "" {
		b = append(b, p.Kind...)
		b = append(b, '/') // no namespace has capitals
	}
	b = append(b, p.Service.Namespace...)
	b = append(b, '/')
	b = append(b, p.Service.Name...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(p.Port), 10)
	if p.Use != topology.UseHTTP {
		b = append(b, '/')
		b = append(b, p.Use...)
	}
	b = appendTLS(b, p.TLS)
	b = append(b, '#')
	b = hex.AppendEncode(b, h.Sum(nil))
	return string(b)
}

// protocol says what to speak, by the use and the Service's appProtocol (GEP-1911,
// KEP-3726). Others than these are HTTP/1.1, or have been refused with the
// reference.
func protocol(p *topology.ServicePort) ir.Protocol {
	switch p.Use {
	case topology.UseTCP:
		return ir.TCP
	case topology.UseUDP:
		return ir.UDP
	case topology.UseGRPC:
		return ir.H2C
	case topology.UseHTTP:
	}
	switch {
	case p.AppProtocol == "kubernetes.io/h2c", p.AppProtocol == "grpc":
		return ir.H2C
	case p.AppProtocol == "kubernetes.io/ws", strings.EqualFold(p.AppProtocol, "kubernetes.io/wss"):
		return ir.WebSocket
	default:
		return ir.HTTP1
	}
}
