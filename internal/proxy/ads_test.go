package proxy

import (
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// adsServer is the least of a control plane: it answers each subscription once,
// LDS with the given listeners and CDS with nothing. Messages are put together
// by field number, so that go-control-plane stays out of this package.
type adsServer struct {
	listeners [][]byte

	mu     sync.Mutex
	refuse int
	opened []time.Time
}

const (
	typeListener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeHCM      = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
	typeFault    = "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault"
	typeRouter   = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
)

// serve listens on the Unix socket until the test ends.
func (a *adsServer) serve(t *testing.T, socket string) {
	t.Helper()
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(a.stream))
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() { srv.Stop(); wg.Wait() })
}

// serveIn makes the socket's directory first.
func (a *adsServer) serveIn(t *testing.T, dir, socket string) {
	t.Helper()
	if err := privateDir(dir); err != nil {
		t.Fatal(err)
	}
	a.serve(t, socket)
}

func (a *adsServer) stream(_ any, s grpc.ServerStream) error {
	a.mu.Lock()
	a.opened = append(a.opened, time.Now())
	refused := len(a.opened) <= a.refuse
	a.mu.Unlock()
	if refused {
		return status.Error(codes.Unavailable, "not now")
	}
	answered := map[string]bool{}
	for {
		var req []byte
		if err := s.RecvMsg(&req); err != nil {
			return err
		}
		url := stringField(req, 2)
		if answered[url] {
			continue
		}
		answered[url] = true
		resp := text(nil, 1, "v1")
		if url == typeListener {
			for _, l := range a.listeners {
				// Resource: version, Any, name.
				resp = message(resp, 2, text(message(text(nil, 1, "v1"), 2, anyOf(typeListener, l)), 3, stringField(l, 1)))
			}
		}
		resp = text(text(resp, 4, url), 5, "nonce-"+url)
		if err := s.SendMsg(&resp); err != nil {
			return err
		}
	}
}

func (a *adsServer) streams() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.opened...)
}

// httpListener answers every request on the address with 200, after a delay.
func httpListener(name string, addr *net.TCPAddr, delay time.Duration) []byte {
	socketAddress := number(text(nil, 2, addr.IP.String()), 3, uint64(addr.Port))
	direct := number(nil, 1, 200)
	route := message(message(nil, 1, text(nil, 1, "/")), 7, direct)
	host := message(text(text(nil, 1, "all"), 2, "*"), 3, route)
	hcm := text(nil, 2, "edge")
	hcm = message(hcm, 4, message(text(nil, 1, "routes"), 2, host))
	if delay > 0 {
		// HTTPFault.delay: fixed_delay as a Duration, percentage.
		fixed := message(nil, 3, number(number(nil, 1, uint64(delay/time.Second)), 2, uint64(delay%time.Second)))
		hcm = message(hcm, 5, message(text(nil, 1, "delay"), 4, anyOf(typeFault, message(nil, 1, message(fixed, 4, number(nil, 1, 100))))))
	}
	hcm = message(hcm, 5, message(text(nil, 1, "router"), 4, anyOf(typeRouter, nil)))
	filter := message(text(nil, 1, "http"), 4, anyOf(typeHCM, hcm))
	l := message(text(nil, 1, name), 2, message(nil, 1, socketAddress))
	return message(l, 3, message(nil, 3, filter))
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func number(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func message(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func anyOf(url string, m []byte) []byte { return message(text(nil, 1, url), 2, m) }

// stringField returns the first value of a string field of a message.
func stringField(b []byte, field protowire.Number) string {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ""
		}
		b = b[n:]
		if num == field && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			return string(v)
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return ""
		}
		b = b[n:]
	}
	return ""
}

// rawCodec hands messages through as bytes.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), b...)
	return nil
}
func (rawCodec) Name() string { return "proto" }
