package echo

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // RFC 6455 §4.2.2 prescribes SHA-1 for the handshake
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// acceptGUID is the constant of RFC 6455 §1.3.
	acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	// maxFrame is the largest payload that is echoed.
	maxFrame = 64 << 10
	// socketIdle ends a WebSocket on which nothing arrives.
	socketIdle = 5 * time.Minute
)

// The opcodes of RFC 6455 §5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

// errProtocol ends a WebSocket whose client breaks the framing rules.
var errProtocol = errors.New("websocket protocol error")

// frame is one WebSocket frame, unmasked.
type frame struct {
	final   bool
	opcode  byte
	payload []byte
}

// isWebSocket reports whether r asks for an upgrade to WebSocket (RFC 6455 §4.1).
func isWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 &&
		hasToken(r.Header.Values("Connection"), "upgrade") &&
		hasToken(r.Header.Values("Upgrade"), "websocket")
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		if slices.ContainsFunc(strings.Split(v, ","), func(part string) bool {
			return strings.EqualFold(strings.TrimSpace(part), token)
		}) {
			return true
		}
	}
	return false
}

// serveWebSocket shakes hands and sends every message back until either side
// closes. The response header Echo-Name tells which backend it is.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if key == "" || r.Header.Get("Sec-WebSocket-Version") != "13" {
		w.Header().Set("Sec-WebSocket-Version", "13")
		http.Error(w, "echo: not a WebSocket handshake of version 13", http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "echo: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(s.upgraded, func() { _ = conn.Close() })()
	_, err = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nEcho-Name: %s\r\n\r\n", acceptKey(key), headerValue(s.name))
	if err != nil || rw.Flush() != nil {
		return
	}
	// A broken socket is the client's affair, which it sees by itself.
	_ = echoFrames(conn, rw)
}

// acceptKey computes Sec-WebSocket-Accept (RFC 6455 §4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + acceptGUID)) //nolint:gosec // see the import
	return base64.StdEncoding.EncodeToString(sum[:])
}

// headerValue drops what would end a header line.
func headerValue(s string) string {
	return strings.NewReplacer("\r", "", "\n", "").Replace(s)
}

func echoFrames(conn net.Conn, rw *bufio.ReadWriter) error {
	for {
		if err := conn.SetDeadline(time.Now().Add(socketIdle)); err != nil {
			return err
		}
		f, err := readFrame(rw.Reader)
		if err != nil {
			return err
		}
		switch f.opcode {
		case opPing:
			f.opcode = opPong
		case opPong:
			continue
		case opContinuation, opText, opBinary, opClose:
		default:
			return fmt.Errorf("%w: opcode %#x", errProtocol, f.opcode)
		}
		if err := writeFrame(rw.Writer, f); err != nil {
			return err
		}
		if f.opcode == opClose {
			return nil
		}
	}
}

// readFrame reads one frame of a client, which must be masked (RFC 6455 §5.1).
func readFrame(r io.Reader) (frame, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{final: head[0]&0x80 != 0, opcode: head[0] & 0x0f}
	if head[1]&0x80 == 0 {
		return frame{}, fmt.Errorf("%w: a client's frame is not masked", errProtocol)
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var b [2]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return frame{}, err
		}
		size = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return frame{}, err
		}
		size = binary.BigEndian.Uint64(b[:])
	}
	if size > maxFrame {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes; the limit is %d", errProtocol, size, maxFrame)
	}
	var mask [4]byte
	if _, err := io.ReadFull(r, mask[:]); err != nil {
		return frame{}, err
	}
	f.payload = make([]byte, size)
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, err
	}
	for i := range f.payload {
		f.payload[i] ^= mask[i%4]
	}
	return f, nil
}

// writeFrame writes one frame of a server, which is not masked.
func writeFrame(w *bufio.Writer, f frame) error {
	first := f.opcode
	if f.final {
		first |= 0x80
	}
	var head []byte
	switch n := len(f.payload); {
	case n < 126:
		head = []byte{first, byte(n)}
	case n <= 0xffff:
		head = binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n))
	default:
		head = binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(n))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if _, err := w.Write(f.payload); err != nil {
		return err
	}
	return w.Flush()
}
