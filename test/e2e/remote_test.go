//go:build linux

package e2e

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/test/child"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// configServer is a `gatehouse serve-config` of a directory.
type configServer struct {
	tools
	dir, base string
	address   string
	args      []string
	// fromCluster says that args say what is published.
	fromCluster bool
	cmd         *exec.Cmd
	log         *output.Buffer
	finished    <-chan struct{}
}

// newConfigServer prepares a config server with the manifests of a site.
func newConfigServer(t *testing.T, s *site, args ...string) *configServer {
	t.Helper()
	base := t.TempDir()
	c := &configServer{
		tools: needTools(t), base: base, dir: filepath.Join(base, "d"), args: args, log: new(output.Buffer),
		address: net.JoinHostPort("127.0.0.1", fmt.Sprint(port.OfTest(t))),
	}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.write(t, "gateway.yaml", siteGateway("{name: http, port: 80, protocol: HTTP}"))
	c.write(t, "backends.yaml", mustBackend(t, siteNamespace, "v1", "v1")+mustBackend(t, siteNamespace, "v2", "v2"))
	c.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("end of the config server's log:\n%s", c.log.Tail(40))
		}
	})
	return c
}

func (c *configServer) write(t *testing.T, name, content string) {
	t.Helper()
	(&process{dir: c.dir}).write(t, name, content)
}

// file writes a private file beside the manifests, and returns its path.
func (c *configServer) file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(c.base, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *configServer) start(t *testing.T) {
	t.Helper()
	args := []string{"serve-config", "--listen", c.address}
	if !c.fromCluster {
		args = append(args, c.dir, "--state-dir", filepath.Join(c.base, "s"))
	}
	args = append(args, c.args...)
	c.cmd = exec.Command(c.gatehouse, args...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	var err error
	if c.finished, err = child.Start(c.cmd, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func (c *configServer) kill() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		<-c.finished
		c.cmd = nil
	}
}

// remoteSite is a site that has no files of its own but those of a config server.
func remoteSite(t *testing.T) *site {
	t.Helper()
	found := needTools(t)
	s := &site{address: newAddress()}
	p, err := newProcess(found, "--bind", s.address, "--port-offset", fmt.Sprint(portOffset))
	if err != nil {
		t.Fatal(err)
	}
	s.process = p
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("end of gatehouse's log:\n%s", p.log.Tail(60))
		}
	})
	return s
}

// secured are arguments of a config server with TLS that wants a token or a certificate, and of a
// client that shows either.
func (c *configServer) secured(t *testing.T) (withToken, withCertificate []string) {
	t.Helper()
	server := issue(func(*x509.Certificate) {}, "config.test")
	client := issueClient(clientAuthority, "edge-1")
	c.args = append(c.args,
		"--tls-cert", c.file(t, "tls.crt", server.cert), "--tls-key", c.file(t, "tls.key", server.key),
		"--token-file", c.file(t, "tokens", []byte("# of the edge\nedge-secret\n")), "--client-ca", c.file(t, "clients.crt", clientAuthority().PEM()))
	common := []string{"--remote", c.address, "--remote-ca", c.file(t, "ca.crt", testAuthority().PEM()), "--remote-server-name", "config.test"}
	return append(slices.Clip(common), "--remote-token-file", c.file(t, "token", []byte("edge-secret\n"))),
		append(slices.Clip(common), "--remote-cert", c.file(t, "edge.crt", client.cert), "--remote-key", c.file(t, "edge.key", client.key))
}

// TestRemote protects edge boxes: what is saved at the config server is served, and a server that is
// lost, replaced or away at a restart costs no request.
func TestRemote(t *testing.T) {
	t.Parallel()
	s := remoteSite(t)
	server := newConfigServer(t, s)
	withToken, withCertificate := server.secured(t)
	server.start(t)
	s.args = append(s.args, withToken...)
	s.again(t)
	s.serves(t, "home.example", "v1")
	server.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")

	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example" })
	l.more(t, 50)
	server.kill()
	s.problem(t, "remote "+server.address, "can't be asked")
	l.more(t, 50)

	// The client starts again while there is no server, by whatever it has kept.
	s.kill()
	s.again(t)
	s.serves(t, "home.example", "v2")
	if out, err := s.run("status", "--state-dir", s.state); !strings.Contains(out, "Kept") {
		t.Errorf("the age of the state is not told: %v\n%s", err, out)
	}
	if _, metrics, err := s.get("/metrics"); err != nil || !strings.Contains(metrics, `gatehouse_remote_current{remote="`+server.address+`"} 0`) {
		t.Errorf("the metrics don't tell of the loss: %v", err)
	}
	l.more(t, 50)

	// Another server with other files takes its place; a certificate is as good as a token.
	s.kill()
	s.args = append(s.args[:len(s.args)-len(withToken):len(s.args)-len(withToken)], withCertificate...)
	server.write(t, "late.yaml", siteRoute("late", "late.example", "v1"))
	server.start(t)
	s.again(t)
	s.serves(t, "late.example", "v1")
	s.serves(t, "home.example", "v2")
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}

	// What is broken keeps its last valid version, and what is removed goes.
	server.write(t, "home.yaml", mistake)
	server.write(t, "late.yaml", siteRoute("late", "late.example", "v2"))
	s.serves(t, "late.example", "v2")
	s.serves(t, "home.example", "v2")
	(&process{dir: server.dir}).remove(t, "late.yaml")
	s.answers(t, "http://late.example/", 404)
}

// TestRemoteRefusesStrangers protects what a config server publishes, and tells whoever has the
// wrong key why nothing comes.
func TestRemoteRefusesStrangers(t *testing.T) {
	t.Parallel()
	s := remoteSite(t)
	server := newConfigServer(t, s)
	withToken, _ := server.secured(t)
	token := server.file(t, "token", []byte("another"))
	server.start(t)
	s.args = append(s.args, withToken...)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	logged := func(text string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if log := s.log.Tail(50); !strings.Contains(log, text) {
				return fmt.Errorf("%q is not told:\n%s", text, log)
			}
			return nil
		})
	}
	logged("the token is not one of the config server's")
	if err := os.WriteFile(token, []byte("edge-secret"), 0o600); err != nil { // it is read at each connection
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
	s.serves(t, "home.example", "v1")
	s.kill()
	if err := os.RemoveAll(s.state); err != nil {
		t.Fatal(err)
	}
	s.args = append(s.args, "--remote-ca", server.file(t, "other.crt", otherAuthority().PEM()))
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	logged("certificate signed by unknown authority")
}

// garbage is a config server that sends what nobody asked for.
type garbage struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
}

func (garbage) DeltaAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	text, err := anypb.New(wrapperspb.String(`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": []`))
	if err != nil {
		return err
	}
	for _, r := range []*discoveryv3.DeltaDiscoveryResponse{
		{TypeUrl: "gateway.networking.k8s.io/v1/HTTPRoute", Resources: []*discoveryv3.Resource{
			nil, {}, {Name: siteNamespace + "/home"}, {Name: siteNamespace + "/home", Version: "1", Resource: text}, {Name: "//", Resource: text},
			{Name: siteNamespace + "/home", Version: "2", Resource: &anypb.Any{TypeUrl: "x", Value: []byte("\xff\x00")}},
		}},
		{TypeUrl: "no/such/Kind", RemovedResources: []string{siteNamespace + "/home"}, SystemVersionInfo: "1"},
		{TypeUrl: "gateway.networking.k8s.io/v1/Gateway", RemovedResources: []string{siteNamespace + "/gw", "", "/"}, SystemVersionInfo: "\x00"},
	} {
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	return nil // in the midst of it
}

// TestRemoteGarbage protects what is served from a config server that has gone mad.
func TestRemoteGarbage(t *testing.T) {
	t.Parallel()
	s := remoteSite(t)
	server := newConfigServer(t, s)
	server.start(t)
	s.args = append(s.args, "--remote", server.address, "--remote-plaintext")
	s.again(t)
	s.serves(t, "home.example", "v1")
	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example" })
	server.kill()
	lis, err := net.Listen("tcp", server.address)
	if err != nil {
		t.Fatal(err)
	}
	mad := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(mad, garbage{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = mad.Serve(lis)
	}()
	s.problem(t, "remote "+server.address, "ended the connection")
	l.more(t, 50)
	mad.Stop()
	<-done
	server.write(t, "late.yaml", siteRoute("late", "late.example", "v2"))
	server.start(t)
	s.serves(t, "late.example", "v2")
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
}
