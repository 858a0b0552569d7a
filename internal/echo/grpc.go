package echo

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// isGRPC reports whether r is a call of gRPC, which exists over HTTP/2 only.
func isGRPC(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return r.ProtoMajor == 2 && (kind == "application/grpc" || kind == "application/grpc+proto")
}

// serveGRPC answers a call of any service and method. The answer is one
// google.protobuf.StringValue that holds the [Answer] as JSON. A request of the same
// type is shown as its body. A stream of the client is read to its end.
func (s *Server) serveGRPC(w http.ResponseWriter, script Script, answer Answer) {
	header := w.Header()
	header.Set("Content-Type", "application/grpc")
	for _, h := range script.Headers {
		header.Add(h.Name, h.Value)
	}
	if script.Code != codes.OK && script.applies(answer.Attempt) {
		// Without a message, gRPC sends the status in the headers, which is where
		// a proxy that retries looks for it.
		header.Set("Grpc-Status", strconv.Itoa(int(script.Code)))
		header.Set("Grpc-Message", "echo: as asked")
		return
	}
	message, err := json.Marshal(answer)
	if err == nil {
		message, err = proto.Marshal(wrapperspb.String(string(message)))
	}
	if err != nil {
		header.Set("Grpc-Status", strconv.Itoa(int(codes.Internal)))
		return
	}
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	// An error here means that the client is gone, so nobody can be told.
	_, _ = w.Write(append(frame, message...))
	header.Set(http.TrailerPrefix+"Grpc-Status", "0")
}

// grpcBody is the text of the last StringValue among the messages of a call's
// body; empty when they are of another type or compressed.
func grpcBody(body string) string {
	r := strings.NewReader(body)
	var text wrapperspb.StringValue
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return text.GetValue()
		}
		n := int64(binary.BigEndian.Uint32(head[1:]))
		message, err := io.ReadAll(io.LimitReader(r, n))
		if err != nil || head[0] != 0 || int64(len(message)) != n || proto.Unmarshal(message, &text) != nil {
			return ""
		}
	}
}

// parseCode reads a status code of gRPC, as a number or by its name.
func parseCode(text string) (codes.Code, error) {
	var code codes.Code
	if _, err := strconv.Atoi(text); err != nil {
		text = strconv.Quote(strings.ToUpper(text))
	}
	if err := code.UnmarshalJSON([]byte(text)); err != nil {
		return code, fmt.Errorf("code %s is no status code of gRPC", text)
	}
	return code, nil
}
