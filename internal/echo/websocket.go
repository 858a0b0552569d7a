package echo

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http/httpguts"
)

const (
	// maxMessage is the largest message of a WebSocket that is echoed, in bytes.
	maxMessage = 64 << 10
	// socketIdle ends a WebSocket on which nothing arrives.
	socketIdle = 5 * time.Minute
)

// isWebSocket reports whether r asks for an upgrade to WebSocket (RFC 6455 §4.1).
func isWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") &&
		httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket")
}

// serveWebSocket shakes hands and sends every message back until either side
// closes. The response header Echo-Name tells which backend it is.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(s.upgraded)
	defer cancel()
	idle := time.AfterFunc(socketIdle, cancel)
	defer idle.Stop()
	w.Header().Set("Echo-Name", s.name)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // pages of any origin may talk to a test backend
		OnPingReceived: func(context.Context, []byte) bool {
			idle.Reset(socketIdle)
			return true
		},
	})
	if err != nil {
		return // Accept has answered with the reason
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage)
	for {
		// An error means that the client has closed the socket or has broken the
		// protocol, which the library has answered already.
		kind, message, err := conn.Read(ctx)
		if err != nil || conn.Write(ctx, kind, message) != nil {
			return
		}
		idle.Reset(socketIdle)
	}
}
