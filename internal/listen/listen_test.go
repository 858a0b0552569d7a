package listen

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long a condition may take.
const patience = 10 * time.Second

// dial opens a connection. It is nil if the server has reset it before this side knew
// that it is open.
func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := d.Dial("tcp", to)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// served reports whether a connection is answered, and not closed.
func served(t *testing.T, c net.Conn) bool {
	t.Helper()
	if c == nil {
		return false
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = c.Write([]byte("x"))
	b := make([]byte, 1)
	_, err := io.ReadFull(c, b)
	return err == nil
}

// TestLimits protects honest clients from those who open connections and say nothing.
func TestLimits(t *testing.T) {
	refused := map[Reason]*atomic.Int64{Total: {}, PerAddress: {}}
	lis, err := TCP("127.0.0.1:0", Limits{Total: 5, PerAddress: 2, Refused: func(_ netip.Addr, why Reason) { refused[why].Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close(); _ = c.Close() }()
		}
	}()
	defer func() { _ = lis.Close(); <-ended }()
	to := lis.Addr().String()

	var silent []net.Conn
	for range 2 {
		silent = append(silent, dial(t, "127.0.0.2", to))
	}
	if !served(t, silent[1]) {
		t.Error("the second connection of an address is not served")
	}
	for range 3 {
		if served(t, dial(t, "127.0.0.2", to)) {
			t.Error("the third connection of an address is served")
		}
	}
	steady := dial(t, "127.0.0.3", to)
	for _, from := range []string{"127.0.0.4", "127.0.0.5"} {
		if !served(t, dial(t, from, to)) {
			t.Errorf("%s is not served beside another address at its bound", from)
		}
	}
	if served(t, dial(t, "127.0.0.6", to)) {
		t.Error("there are six connections")
	}
	if !served(t, steady) {
		t.Error("an open connection suffers")
	}
	if a, b := refused[PerAddress].Load(), refused[Total].Load(); a != 3 || b != 1 {
		t.Errorf("refused %d and %d", a, b)
	}
	_ = silent[0].Close()
	deadline := time.After(patience)
	for !served(t, dial(t, "127.0.0.2", to)) { // until the server has seen the end
		select {
		case <-deadline:
			t.Fatal("a place is not free again")
		default:
		}
	}
}

// TestSource protects IPv4 and IPv6 clients from being counted wrongly: a client of IPv6
// has all addresses of its network.
func TestSource(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::", "[fe80::1%lo]:80": "fe80::",
	} {
		a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
		if got := sourceOf(a).String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
