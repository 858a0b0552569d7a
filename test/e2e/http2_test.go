//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// framer is a connection of HTTP/2 on which every frame is possible.
type framer struct {
	*http2.Framer
	conn    net.Conn
	encoder *hpack.Encoder
	block   bytes.Buffer
	stream  uint32 // the last one opened
}

func (s *site) framer(t *testing.T) *framer {
	t.Helper()
	return framerOn(t, s.open(t, 80))
}

// framerOn begins to speak HTTP/2 on a connection.
func framerOn(t *testing.T, conn net.Conn) *framer {
	t.Helper()
	f := &framer{conn: conn, stream: 1<<32 - 1}
	_ = f.conn.SetDeadline(time.Now().Add(callTimeout))
	f.Framer = http2.NewFramer(f.conn, f.conn)
	f.AllowIllegalWrites = true
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.encoder = hpack.NewEncoder(&f.block)
	if _, err := io.WriteString(f.conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// headers encodes pairs of names and values.
func (f *framer) headers(pairs ...string) []byte {
	f.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return f.block.Bytes()
}

// open starts a request.
func (f *framer) open(end bool, pairs ...string) error {
	f.stream += 2
	return f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: f.stream, BlockFragment: f.headers(pairs...), EndStream: end, EndHeaders: true,
	})
}

// answer reads until the last request is answered, and returns its status; "reset"
// and "closed" where it never is.
func (f *framer) answer() string {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if frame.StreamID == f.stream {
				return frame.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == f.stream {
				return "reset"
			}
		}
	}
}

// get is the headers of a plain request.
func get(host, path string) []string {
	return []string{":method", "GET", ":scheme", "http", ":authority", host, ":path", path}
}

// TestHTTP2Floods protects everybody from clients that make work for others at no
// cost of their own: such a connection is closed.
func TestHTTP2Floods(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := edgeSite(t, nil)
	home := get("home.example", "/?delay=100ms")
	for _, c := range []struct {
		name  string
		times int
		once  func(f *framer, i int) error
	}{
		{"rapid resets", 2000, func(f *framer, _ int) error {
			if err := f.open(true, home...); err != nil {
				return err
			}
			return f.WriteRSTStream(f.stream, http2.ErrCodeCancel)
		}},
		{"headers that go on", 2000, func(f *framer, i int) error {
			if i == 0 {
				f.stream += 2
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.stream, BlockFragment: f.headers(home...)})
			}
			return f.WriteContinuation(f.stream, false, f.headers("x-"+strings.Repeat("y", 1000), fmt.Sprint(i)))
		}},
		{"empty headers that go on", 10_000, func(f *framer, i int) error {
			if i == 0 {
				f.stream += 2
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.stream, BlockFragment: f.headers(home...)})
			}
			return f.WriteContinuation(f.stream, false, nil)
		}},
		{"empty data", 10_000, func(f *framer, i int) error {
			if i == 0 {
				return f.open(false, home...)
			}
			return f.WriteData(f.stream, false, nil)
		}},
		{"priorities", 10_000, func(f *framer, i int) error {
			return f.WritePriority(uint32(2*i+1), http2.PriorityParam{Weight: 1})
		}},
		{"window updates", 20_000, func(f *framer, _ int) error { return f.WriteWindowUpdate(0, 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.beside(t, func() {
				f := s.framer(t)
				closed := make(chan error, 1)
				go func() { closed <- closes(f.conn, callTimeout) }()
				i := 0
				var err error
				for ; i < c.times && err == nil; i++ {
					err = c.once(f, i)
				}
				// A client that runs out of its own time has not been stopped.
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%d of them, and nobody reads on", i)
				}
				if err := <-closed; err != nil {
					t.Errorf("%d of them: %v", i, err)
				}
				t.Logf("%d of %d written", i, c.times)
			})
		})
	}
}

// TestHTTP2UnreadAnswers protects memory from clients that ask and don't read: what
// they have not read is bounded, and pings that nobody reads the answers of end the
// connection.
func TestHTTP2UnreadAnswers(t *testing.T) {
	t.Parallel()
	s := edgeSite(t, nil)
	s.beside(t, func() {
		f := s.framer(t)
		// The sockets between hold hundreds of thousands of answers, which takes its
		// time on a busy machine. They keep their sizes: a receive buffer that shrinks
		// below its window has the kernel drop what comes, acknowledgements with it, and
		// then it is the network that stands still.
		if err := f.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var err error
		i := 0
		for ; i < 2_000_000 && err == nil; i++ {
			err = f.WritePing(false, [8]byte{})
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d pings, and the connection is still there: %v", i, err)
		}
		t.Logf("%d pings, then %v", i, err)
	})
}

// TestHTTP2Requests protects backends from requests that HTTP/2 can carry and that
// would be others in HTTP/1.
func TestHTTP2Requests(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	w := newWire(t)
	s := edgeSite(t, map[string]string{"raw.yaml": w.manifest() + siteRoute("raw", "raw.example", "raw")})
	eventually(t, siteTimeout, func() error {
		if a := s.raw(t, "GET /ready HTTP/1.1\r\nHost: raw.example\r\n\r\n"); a.body != "ok" {
			return fmt.Errorf("%d %q", a.status, a.body)
		}
		return nil
	})
	shape := func(more ...string) []string { return append(get("raw.example", "/shape"), more...) }
	with := func(i int, value string) []string {
		pairs := shape()
		pairs[2*i+1] = value
		return pairs
	}
	s.beside(t, func() {
		for _, c := range []struct {
			name    string
			headers []string
			body    string
			refused bool
		}{
			{name: "plain", headers: shape()},
			{name: "a body", headers: shape("content-length", "2"), body: "ab"},
			{"a body longer than it says", shape("content-length", "1"), "ab", true},
			{"a body shorter than it says", shape("content-length", "3"), "ab", true},
			{"two lengths", shape("content-length", "2", "content-length", "3"), "ab", true},
			{"TE", shape("transfer-encoding", "chunked"), "0\r\n\r\nGET /hidden HTTP/1.1\r\n\r\n", true},
			{"Connection", shape("connection", "close"), "", true},
			{"CRLF in a value", shape("x", "y\r\nTransfer-Encoding: chunked"), "", true},
			{"LF in a value", shape("x", "y\nTransfer-Encoding: chunked"), "", true},
			{"NUL in a value", shape("x", "y\x00"), "", true},
			{"a colon in a name", shape("x: y", "z"), "", true},
			{"CRLF in a name", shape("x\r\ntransfer-encoding", "chunked"), "", true},
			{"upper case in a name", shape("X-Y", "z"), "", true},
			{"a space in a name", shape("content-length ", "5"), "", true},
			{"CRLF in the path", with(3, "/shape HTTP/1.1\r\nx: y"), "", true},
			{"a space in the path", with(3, "/shape HTTP/1.1"), "", true},
			{"no slash in the path", with(3, "shape"), "", true},
			{"no path", with(3, ""), "", true},
			{"a space in the method", with(0, "GET /hidden HTTP/1.1"), "", true},
			{"CRLF in the host", with(2, "raw.example\r\nx: y"), "", true},
			{"a user in the host", with(2, "raw.example@other.example"), "", true},
			{"two paths", shape(":path", "/hidden"), "", true},
			{"a path after headers", append([]string{"x", "y"}, shape()...), "", true},
			{"an unknown pseudo-header", append(get("raw.example", "/shape"), ":x", "y"), "", true},
		} {
			w.mu.Lock()
			w.heads = nil
			w.mu.Unlock()
			f := s.framer(t)
			if err := f.open(c.body == "", c.headers...); err != nil {
				t.Fatal(err)
			}
			if c.body != "" {
				_ = f.WriteData(f.stream, true, []byte(c.body))
			}
			status := f.answer()
			_ = f.conn.Close()
			if len(w.of("hidden")) > 0 {
				t.Errorf("%s: hides a request: %q", c.name, w.of("hidden"))
			}
			seen := w.of("shape")
			for _, head := range seen {
				if bad := ambiguity(head); bad != "" {
					t.Errorf("%s: forwarded with %s: %q", c.name, bad, head)
				}
			}
			if (status == "200") == c.refused {
				t.Errorf("%s: %s, the backend saw %q", c.name, status, seen)
			}
		}
		// The Host of a request is the one by which it was routed.
		f := s.framer(t)
		if err := f.open(true, shape("host", "other.example")...); err != nil {
			t.Fatal(err)
		}
		if status := f.answer(); status == "200" {
			for _, head := range w.of("shape") {
				if strings.Contains(head, "other.example") {
					t.Errorf("two hosts: the backend saw %q", head)
				}
			}
		}
	})
}
