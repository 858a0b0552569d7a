//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// wire is a backend that keeps what arrives, byte for byte: one request for each
// connection, whose end it takes from its own headers.
type wire struct {
	listener net.Listener

	mu    sync.Mutex
	heads []string
}

func newWire(t *testing.T) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return w
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	var head bytes.Buffer
	for !bytes.HasSuffix(head.Bytes(), []byte("\r\n\r\n")) {
		b, err := in.ReadByte()
		if err != nil {
			return
		}
		head.WriteByte(b)
	}
	w.mu.Lock()
	w.heads = append(w.heads, head.String())
	w.mu.Unlock()
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(&head, in)))
	if err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
		if req.Header.Get("Upgrade") != "" {
			w.early(conn, in)
		}
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

// early keeps what comes after a request for another protocol before there is an
// answer to it.
func (w *wire) early(conn net.Conn, in io.Reader) {
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.heads = append(w.heads, string(rest))
	}
}

// of returns the heads of requests whose first line contains a text.
func (w *wire) of(text string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, h := range w.heads {
		if line, _, _ := strings.Cut(h, "\r\n"); strings.Contains(line, text) {
			out = append(out, h)
		}
	}
	return out
}

// manifest is a Service raw that leads to it.
func (w *wire) manifest() string {
	return httpBackend.leading(siteNamespace, "raw", w.listener.Addr().(*net.TCPAddr).Port)
}

// ambiguity reports what in a request that was forwarded two servers could read in
// two ways.
func ambiguity(head string) string {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	framings := 0
	for i, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return fmt.Sprintf("a control character in %q", line)
		}
		if i == 0 {
			if n := len(strings.Split(line, " ")); n != 3 || !strings.HasSuffix(line, " HTTP/1.1") {
				return fmt.Sprintf("the line %q", line)
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return fmt.Sprintf("the header %q", line)
		}
		value = strings.TrimSpace(value)
		switch lower := strings.NewReplacer("_", "-").Replace(strings.ToLower(name)); lower {
		case "content-length":
			framings++
			if _, err := strconv.ParseUint(value, 10, 63); err != nil {
				return fmt.Sprintf("the length %q", value)
			}
		case "transfer-encoding":
			framings++
			if value != "chunked" {
				return fmt.Sprintf("the encoding %q", value)
			}
		}
	}
	if framings > 1 {
		return "several framings"
	}
	return ""
}

// TestSmuggling protects backends from requests that hide another one: in whatever
// way two servers may read a message differently, it is refused, or forwarded so
// that there is one way to read it.
func TestSmuggling(t *testing.T) {
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
	// refused means that nothing may be forwarded at all.
	const refused, forwarded = true, false
	const hidden = "GET /hidden HTTP/1.1\r\nHost: raw.example\r\n\r\n"
	post := func(headers, body string) string {
		return "POST /shape HTTP/1.1\r\nHost: raw.example\r\n" + headers + "\r\n" + body
	}
	s.beside(t, func() {
		for _, c := range []struct {
			name, bytes string
			refused     bool
		}{
			{"CL.TE", post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE.CL", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)), refused},
			{"TE twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE twice, the same", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE list", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE of another name", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE after a tab", post("Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE after a form feed", post("Transfer-Encoding: \x0bchunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE in quotes", post("Transfer-Encoding: \"chunked\"\r\nContent-Length: 4\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE before a colon with a space", post("Transfer-Encoding : chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE with an underscore", post("Transfer_Encoding: chunked\r\nContent-Length: 0\r\n", ""), forwarded},
			// One line, as RFC 9112 (5.2) allows.
			{"TE in a folded line", post("X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "abcd"), forwarded},
			{"TE folded", post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"+hidden), refused},
			{"TE after a bare LF", post("X: y\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""), refused},
			// The CR is left out, and the rest belongs to the value.
			{"TE after a bare CR", post("X: y\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""), forwarded},
			{"TE of HTTP/1.0", "POST /shape HTTP/1.0\r\nHost: raw.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, refused},
			{"CL twice", post("Content-Length: 0\r\nContent-Length: 44\r\n", hidden), refused},
			{"CL twice, the same", post("Content-Length: 2\r\nContent-Length: 2\r\n", "ab"), refused},
			{"CL list", post("Content-Length: 0, 44\r\n", hidden), refused},
			{"CL with a plus", post("Content-Length: +44\r\n", hidden), refused},
			{"CL with a minus", post("Content-Length: -1\r\n", hidden), refused},
			{"CL in hexadecimal", post("Content-Length: 0x2c\r\n", hidden), refused},
			{"CL with a space in it", post("Content-Length: 4 4\r\n", hidden), refused},
			{"CL empty", post("Content-Length: \r\n", hidden), refused},
			{"CL too large", post("Content-Length: 18446744073709551617\r\n", "a"), refused},
			{"CL with NUL", post("Content-Length: 4\x004\r\n", hidden), refused},
			{"chunk extensions", post("Transfer-Encoding: chunked\r\n", "2;a=b\r\nab\r\n0\r\n\r\n"), forwarded},
			{"chunk extension with a bare LF", post("Transfer-Encoding: chunked\r\n", "2;\nab\r\n0\r\n\r\n"), refused},
			{"chunk size with a prefix", post("Transfer-Encoding: chunked\r\n", "0x2\r\nab\r\n0\r\n\r\n"), refused},
			{"chunk size with a minus", post("Transfer-Encoding: chunked\r\n", "-2\r\nab\r\n0\r\n\r\n"), refused},
			{"chunk size too large", post("Transfer-Encoding: chunked\r\n", "10000000000000002\r\nab\r\n0\r\n\r\n"), refused},
			{"chunk without its end", post("Transfer-Encoding: chunked\r\n", "2\r\nabXX0\r\n\r\n"), refused},
			{"trailers that frame", post("Transfer-Encoding: chunked\r\n", "2\r\nab\r\n0\r\nContent-Length: 44\r\n\r\n"), forwarded},
			{"NUL in a header", post("X: a\x00b\r\nContent-Length: 0\r\n", ""), refused},
			{"NUL in a name", post("X\x00: a\r\nContent-Length: 0\r\n", ""), refused},
			{"a space before the colon", post("X : y\r\nContent-Length: 0\r\n", ""), refused},
			{"no colon", post("X\r\nContent-Length: 0\r\n", ""), refused},
			{"no name", post(": y\r\nContent-Length: 0\r\n", ""), refused},
			{"two hosts", post("Host: other.example\r\nContent-Length: 0\r\n", ""), refused},
			{"no host", "GET /shape HTTP/1.1\r\n\r\n", refused},
			{"a space in the path", "GET /shape x HTTP/1.1\r\nHost: raw.example\r\n\r\n", refused},
			{"a tab for a space", "GET\t/shape\tHTTP/1.1\r\nHost: raw.example\r\n\r\n", forwarded},
			{"a method with a colon", "GE:T /shape HTTP/1.1\r\nHost: raw.example\r\n\r\n", refused},
			{"HTTP/0.9", "GET /shape\r\n\r\n", refused},
			{"HTTP/2 over HTTP/1", "GET /shape HTTP/2.0\r\nHost: raw.example\r\n\r\n", refused},
			{"a body of GET", "GET /shape HTTP/1.1\r\nHost: raw.example\r\nContent-Length: " + strconv.Itoa(len(hidden)) + "\r\n\r\n" + hidden, forwarded},
			{"Connection names the framing", post("Connection: content-length\r\nContent-Length: "+strconv.Itoa(len(hidden))+"\r\n", hidden), forwarded},
			{"Connection names the host", post("Connection: host\r\nContent-Length: 0\r\n", ""), refused},
			{"an upgrade that is refused", "GET /shape HTTP/1.1\r\nHost: raw.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + hidden, forwarded},
			{"h2c", "GET /shape HTTP/1.1\r\nHost: raw.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n" + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", forwarded},
		} {
			w.mu.Lock()
			w.heads = nil
			w.mu.Unlock()
			a := s.raw(t, c.bytes)
			for _, head := range w.of("hidden") {
				t.Errorf("%s: hides a request: %q", c.name, head)
			}
			seen := w.of("shape")
			for _, head := range seen {
				if bad := ambiguity(head); bad != "" {
					t.Errorf("%s: forwarded with %s: %q", c.name, bad, head)
				}
			}
			switch {
			case c.refused && (a.status == 200 || a.status == -1):
				t.Errorf("%s: %d, the backend saw %q", c.name, a.status, seen)
			case !c.refused && (a.status != 200 || len(seen) != 1):
				t.Errorf("%s: %d, want 200; the backend saw %q", c.name, a.status, seen)
			}
			if len(seen) > 1 || a.more > 0 && a.status == 200 && c.refused {
				t.Errorf("%s: %d requests, %d more answers", c.name, len(seen), a.more)
			}
		}
	})
}
