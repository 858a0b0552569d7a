//go:build linux

package e2e

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcCodes are the names of gRPC's status codes by their numbers.
var grpcCodes = []string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// grpcCall is a unary call with a StringValue. It is made of an HTTP/2 request,
// so that an answer which isn't gRPC's can be told from one that is.
type grpcCall struct{ clientCall }

// prepareGRPC makes the call of a gRPC step.
func (s *step) prepareGRPC(at, host string) error {
	if s.Expect.Code == "" && !s.Expect.Failure && s.Expect.Share == nil {
		s.Expect.Code = grpcCodes[0]
	}
	if s.Expect.Code != "" && !slices.Contains(grpcCodes, s.Expect.Code) {
		return fmt.Errorf("%s is not among the status codes %s", s.Expect.Code, strings.Join(grpcCodes, ", "))
	}
	if !strings.Contains(s.GRPC, "/") {
		return fmt.Errorf("%q is not SERVICE/METHOD", s.GRPC)
	}
	if !s.TLS.on && (s.SNI != nil || s.ClientCertificate != "") {
		return fmt.Errorf("sni and clientCertificate need tls: true")
	}
	if s.Host != "" {
		host = s.Host
	}
	u := &url.URL{Scheme: "http", Host: host, Path: "/" + s.GRPC}
	if s.TLS.on {
		u.Scheme = "https"
	}
	port := u.Port()
	if s.Port > 0 {
		if port != "" {
			return fmt.Errorf("the host %s has a port of its own", host)
		}
		port = strconv.Itoa(s.Port)
	}
	message, err := proto.Marshal(wrapperspb.String(s.Body))
	if err != nil {
		return err
	}
	headers := map[string]string{"Host": host, "Content-Type": "application/grpc", "Te": "trailers"}
	maps.Copy(headers, s.Metadata)
	if port != "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	s.call = &grpcCall{clientCall{
		method: http.MethodPost, url: u, address: at, headers: headers, http2: true,
		body: string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + string(message),
		sni:  s.SNI, clientCertificate: s.ClientCertificate,
	}}
	return nil
}

func (c *grpcCall) keyed(key string) caller {
	keyed := *c
	keyed.key = key
	return &keyed
}

// do sends the call and reads the answer out of the HTTP one.
func (c *grpcCall) do(ctx context.Context) (*outcome, error) {
	o, err := c.clientCall.do(ctx)
	if err != nil {
		return nil, err
	}
	for name, v := range o.trailers {
		o.headers[name] = append(o.headers[name], v...)
	}
	o.code = fmt.Sprintf("none of gRPC but HTTP %d", o.status)
	number, err := strconv.Atoi(o.headers.Get("Grpc-Status"))
	isGRPC := strings.HasPrefix(o.headers.Get("Content-Type"), "application/grpc")
	if err != nil || !isGRPC || o.status != http.StatusOK || number < 0 || number >= len(grpcCodes) {
		return o, nil
	}
	if o.code = grpcCodes[number]; number != 0 {
		return o, nil
	}
	if len(o.body) < 5 || o.body[0] != 0 || int(binary.BigEndian.Uint32(o.body[1:])) != len(o.body)-5 {
		return nil, fmt.Errorf("%w: not one message of gRPC: %q", errGarbled, clipped(o.body))
	}
	var message wrapperspb.StringValue
	err = proto.Unmarshal(o.body[5:], &message)
	if err == nil {
		err = json.Unmarshal([]byte(message.GetValue()), &o.answer)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return o, nil
}
