package echo

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server named "v1" for the time of the test.
func start(t *testing.T, config *tls.Config) (*Server, string) {
	t.Helper()
	s, err := New(t.Context(), Options{Listen: []string{"127.0.0.1:0"}, Name: "v1", TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, s.Addresses()[0].String()
}

// client speaks one protocol only.
func client(t *testing.T, set func(*http.Protocols)) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	set(transport.Protocols)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func h2c(p *http.Protocols)   { p.SetUnencryptedHTTP2(true) }

func get(t *testing.T, c *http.Client, url string) (*http.Response, Answer) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a Answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatalf("answer of %s: %v", url, err)
	}
	return res, a
}

func TestAnswerTellsTheRequest(t *testing.T) {
	_, addr := start(t, nil)
	for name, tc := range map[string]struct {
		set   func(*http.Protocols)
		proto string
	}{
		"http1": {http1, "HTTP/1.1"},
		"h2c":   {h2c, "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPut, "http://"+addr+"/a%2Fb?x=1&header=X-Back:yes", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "example.com"
			req.Header.Set("X-Test", "on")
			res, err := client(t, tc.set).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var a Answer
			if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
				t.Fatal(err)
			}
			if a.Name != "v1" || a.Method != "PUT" || a.Host != "example.com" || a.Path != "/a%2Fb" ||
				a.Query != "x=1&header=X-Back:yes" || a.Proto != tc.proto || a.Body != "hello" ||
				a.Headers.Get("X-Test") != "on" {
				t.Errorf("wrong answer: %+v", a)
			}
			if res.Header.Get("X-Back") != "yes" {
				t.Errorf("response headers: %v", res.Header)
			}
		})
	}
}

func TestSeveralAddresses(t *testing.T) {
	s, err := New(t.Context(), Options{Listen: []string{"127.0.0.1:0", "127.0.0.1:0", "[::1]:0"}, Name: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c := client(t, http1)
	for range 5 {
		for _, a := range s.Addresses() {
			get(t, c, "http://"+a.String()+"/")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFaultsForTheFirstRequestsOfAKey(t *testing.T) {
	s, addr := start(t, nil)
	c := client(t, http1)
	for i, want := range []int{503, 503, 200, 200} {
		res, a := get(t, c, "http://"+addr+"/?times=2&status=503&key=k")
		if res.StatusCode != want || a.Attempt != i+1 {
			t.Errorf("request %d: status %d, attempt %d; want %d, %d", i+1, res.StatusCode, a.Attempt, want, i+1)
		}
	}
	if n := s.Requests().Count("k"); n != 4 {
		t.Errorf("Count = %d, want 4", n)
	}
}

func TestScriptByHeaders(t *testing.T) {
	_, addr := start(t, nil)
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Echo-Status", "418")
	res, err := client(t, http1).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 418 {
		t.Errorf("status %d, want 418", res.StatusCode)
	}
}

func TestAbortCutsTheConnection(t *testing.T) {
	_, addr := start(t, nil)
	res, err := client(t, http1).Get("http://" + addr + "/?abort=true")
	if err == nil {
		res.Body.Close()
		t.Fatalf("got status %d, want a cut connection", res.StatusCode)
	}
}

func TestDelay(t *testing.T) {
	_, addr := start(t, nil)
	began := time.Now()
	get(t, client(t, http1), "http://"+addr+"/?delay=50ms")
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
}

func TestBadScriptsAreRefused(t *testing.T) {
	_, addr := start(t, nil)
	c := client(t, http1)
	for _, query := range []string{
		"status=99", "status=600", "status=x", "delay=2h", "delay=-1s", "delay=x", "abort=perhaps",
		"times=0&key=a", "times=1", "key=" + strings.Repeat("k", maxKey+1), "header=nocolon",
		strings.Repeat("header=a:b&", maxHeaders+1),
	} {
		res, err := c.Get("http://" + addr + "/?" + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("?%s: status %d, want 400", query, res.StatusCode)
		}
	}
}

func TestLogIsServedAndEmptied(t *testing.T) {
	_, addr := start(t, nil)
	c := client(t, http1)
	get(t, c, "http://"+addr+"/mirrored?key=m")
	dump := func() Dump {
		res, err := c.Get("http://" + addr + logPath)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var d Dump
		if err := json.NewDecoder(res.Body).Decode(&d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := dump()
	if d.Total != 1 || d.Counts["m"] != 1 || len(d.Entries) != 1 || d.Entries[0].URI != "/mirrored?key=m" {
		t.Errorf("log: %+v", d)
	}
	req, err := http.NewRequest(http.MethodDelete, "http://"+addr+logPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if d := dump(); d.Total != 0 || len(d.Entries) != 0 {
		t.Errorf("log after DELETE: %+v", d)
	}
}

func TestLogIsBounded(t *testing.T) {
	l := newLog()
	for i := range maxEntries + maxKeys + 10 {
		u := "/" + strings.Repeat("x", 2*maxEntryBytes)
		r := &http.Request{Method: "GET", Host: strings.Repeat("h", 9000), RequestURI: u, URL: &url.URL{Path: u}}
		l.record("v1", "key-"+string(rune('a'+i%26))+strings.Repeat("k", i%40), r)
		l.record("v1", time.Duration(i).String(), r)
	}
	d := l.Dump()
	if len(d.Entries) != maxEntries || len(d.Counts) != maxKeys {
		t.Errorf("%d entries, %d keys", len(d.Entries), len(d.Counts))
	}
	if d.Total != 2*(maxEntries+maxKeys+10) {
		t.Errorf("total %d", d.Total)
	}
	if n := len(d.Entries[0].URI) + len(d.Entries[0].Host); n > maxEntryBytes {
		t.Errorf("an entry of %d bytes", n)
	}
}

// dialWebSocket makes the handshake of RFC 6455 and returns the connection.
func dialWebSocket(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The key and its answer are RFC 6455's own example (§1.3).
	if res.StatusCode != 101 || res.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || res.Header.Get("Echo-Name") != "v1" {
		t.Fatalf("handshake: %d %v", res.StatusCode, res.Header)
	}
	return conn, r
}

// The opcodes of RFC 6455 §5.2.
const (
	opText  = 0x1
	opClose = 0x8
	opPing  = 0x9
)

// framed builds a server's frame (RFC 6455 §5.2), or a client's with the bit that says
// that it is masked.
func framed(opcode, maskBit byte, payload string) []byte {
	switch n := len(payload); {
	case n < 126:
		return []byte{0x80 | opcode, maskBit | byte(n)}
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16([]byte{0x80 | opcode, maskBit | 126}, uint16(n))
	default:
		return binary.BigEndian.AppendUint64([]byte{0x80 | opcode, maskBit | 127}, uint64(n))
	}
}

// masked builds a client's frame.
func masked(opcode byte, payload string) []byte {
	b := framed(opcode, 0x80, payload)
	mask := [4]byte{1, 2, 3, 4}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

func TestWebSocketEchoes(t *testing.T) {
	_, addr := start(t, nil)
	conn, r := dialWebSocket(t, addr)
	for _, payload := range []string{"", "hello", strings.Repeat("m", 300), strings.Repeat("l", maxMessage)} {
		if _, err := conn.Write(masked(opText, payload)); err != nil {
			t.Fatal(err)
		}
		want := string(framed(opText, 0, payload)) + payload
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("echo of %d bytes differs (%v)", len(payload), err)
		}
	}
	if _, err := conn.Write(append(masked(opPing, "p"), masked(opClose, "\x03\xe8")...)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "\x8a\x01p\x88\x02\x03\xe8" {
		t.Errorf("pong and close: %q, %v", rest, err)
	}
}

// A frame that breaks the protocol is never echoed: it ends the socket, with a close
// frame that says why (RFC 6455 §7.4.1) where the client can be expected to read one.
func TestWebSocketRefusesBrokenFrames(t *testing.T) {
	_, addr := start(t, nil)
	for name, tc := range map[string]struct {
		bytes string
		code  uint16
	}{
		"unmasked":       {"\x81\x01a", 0},
		"huge":           {"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00" + strings.Repeat("h", maxMessage+1), 1009},
		"unknown opcode": {"\x83\x80\x00\x00\x00\x00", 1002},
	} {
		conn, r := dialWebSocket(t, addr)
		if _, err := io.WriteString(conn, tc.bytes); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(r)
		if tc.code == 0 {
			if len(rest) != 0 {
				t.Errorf("%s: answered %q", name, rest)
			}
			continue
		}
		if len(rest) < 4 || rest[0] != 0x80|opClose || int(rest[1]) != len(rest)-2 || binary.BigEndian.Uint16(rest[2:]) != tc.code {
			t.Errorf("%s: answered %q, want nothing but a close frame of code %d", name, rest, tc.code)
		}
	}
}

func TestShutdownEndsWebSockets(t *testing.T) {
	s, err := New(t.Context(), Options{Listen: []string{"127.0.0.1:0"}, Name: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	_, r := dialWebSocket(t, s.Addresses()[0].String())
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the socket is still open")
	}
}

func TestTLS(t *testing.T) {
	// The certificate of httptest is for example.com.
	source := httptest.NewTLSServer(nil)
	defer source.Close()
	_, addr := start(t, &tls.Config{Certificates: source.TLS.Certificates, MinVersion: tls.VersionTLS12})
	transport, ok := source.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("httptest's transport has changed its type")
	}
	transport = transport.Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	transport.ForceAttemptHTTP2 = true
	defer transport.CloseIdleConnections()
	_, a := get(t, &http.Client{Transport: transport}, "https://"+addr+"/")
	if a.TLS == nil || a.TLS.ServerName != "example.com" || a.TLS.ALPN != "h2" || a.Proto != "HTTP/2.0" {
		t.Errorf("answer: %+v, TLS: %+v", a, a.TLS)
	}
}

func TestAddressInUseIsNamed(t *testing.T) {
	_, addr := start(t, nil)
	err := Serve(t.Context(), Options{Listen: []string{"127.0.0.1:0", addr}})
	if err == nil || !strings.Contains(err.Error(), "echo: listen on "+addr) {
		t.Errorf("error: %v", err)
	}
	if err := Serve(t.Context(), Options{}); err == nil {
		t.Error("no error without addresses")
	}
}
