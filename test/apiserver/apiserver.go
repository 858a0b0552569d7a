package apiserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// The channels of the Gateway API.
const (
	Standard     = "standard"
	Experimental = "experimental"
)

// Options say what is to be there at the start. The zero value is a bare
// Kubernetes.
type Options struct {
	// Channel of the Gateway API whose CustomResourceDefinitions are installed,
	// together with Gatehouse's own; empty for none at all.
	Channel string
	// Args are further arguments of kube-apiserver.
	Args []string
}

// Server is a running API server.
type Server struct {
	// Config is an administrator's.
	Config *rest.Config
	// ServiceAccountKey signs the tokens of ServiceAccounts.
	ServiceAccountKey *rsa.PrivateKey
	// Issuer is who those tokens are from.
	Issuer string

	t testing.TB
	*machine
}

// machine is the processes of a server.
type machine struct {
	dir     string
	options Options
	config  *rest.Config
	crds    []*apiextensionsv1.CustomResourceDefinition // of the options
	key     *rsa.PrivateKey
	store   *store
	binary  string
	args    []string
	log     string
	etcd    *process
	server  *process
	killed  bool   // at least once
	fresh   *state // what is there at the start, where the server is shared
}

const (
	// token is the administrator's.
	token  = "administrator"
	issuer = "https://kubernetes.default.svc"
)

// Start returns an API server with nothing in it but what Options say, for the time
// of the test. It returns when the server answers and all kinds are served. In a
// package whose tests are Shared the server may be one that another test has had.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	if sharing != nil {
		return sharing.borrow(t, opts)
	}
	m := begin(t, t.TempDir(), opts)
	t.Cleanup(m.end)
	awaitCRDs(t, m.config, m.crds)
	return m.serve(t)
}

// serve is the server as a test has it.
func (m *machine) serve(t testing.TB) *Server {
	return &Server{Config: rest.CopyConfig(m.config), ServiceAccountKey: m.key, Issuer: issuer, t: t, machine: m}
}

// begin starts the processes, and returns when the server answers.
func begin(t testing.TB, dir string, opts Options) *machine {
	t.Helper()
	bin := binaries(t)
	peers, clients, serving := port.AddressOfTest(t), port.AddressOfTest(t), port.AddressOfTest(t)
	key, keyFile := serviceAccountKey(t, dir)
	tokens := filepath.Join(dir, "tokens.csv")
	write(t, tokens, []byte(token+",admin,admin,system:masters\n"))
	_, number, _ := net.SplitHostPort(serving)
	m := &machine{
		dir: dir, options: opts, key: key,
		config: &rest.Config{
			Host: "https://" + serving, BearerToken: token,
			QPS: -1, // tests make thousands of objects
		},
		store:  &store{url: "http://" + clients, client: &http.Client{Transport: &http.Transport{}}},
		binary: filepath.Join(bin, "kube-apiserver"),
		log:    filepath.Join(dir, "apiserver.log"),
	}
	var err error
	m.etcd, err = launch(filepath.Join(dir, "etcd.log"), filepath.Join(bin, "etcd"),
		"--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers,
		"--initial-cluster", "default=http://"+peers,
		"--listen-client-urls", "http://"+clients, "--advertise-client-urls", "http://"+clients)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Channel != "" {
		m.crds = CRDs(t, opts.Channel)
		err = seed(t.Context(), m.store, m.crds)
	}
	m.args = append([]string{
		"--etcd-servers=http://" + clients,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + number,
		"--cert-dir=" + dir, // the server makes its own certificate
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + keyFile, "--service-account-signing-key-file=" + keyFile,
		"--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
		// No controller makes the ServiceAccounts that this one would wait for.
		"--disable-admission-plugins=ServiceAccount",
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}, opts.Args...)
	if err == nil {
		err = m.resume()
	}
	if err != nil {
		m.end()
		t.Fatal(err)
	}
	return m
}

// end ends the processes.
func (m *machine) end() {
	if m.server != nil {
		m.server.stop()
	}
	m.etcd.kill()
	m.store.client.CloseIdleConnections()
}

// Kill ends the API server at once; what it stored stays.
func (s *Server) Kill() {
	s.killed = true
	s.server.kill()
}

// Resume starts the API server again after Kill, at its old address.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.resume(); err != nil {
		s.t.Fatal(err)
	}
}

// Compact has etcd forget all that was before: a watch that goes on from there is refused.
func (s *Server) Compact() {
	s.t.Helper()
	if err := s.store.compact(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (m *machine) resume() error {
	server, err := launch(m.log, m.binary, m.args...)
	if err != nil {
		return err
	}
	m.server = server
	if err := m.ready(); err != nil {
		text, _ := os.ReadFile(m.log)
		server.kill()
		return fmt.Errorf("the API server is not ready: %w; it says:\n%s", err, text[max(0, len(text)-4000):])
	}
	return nil
}

// startTime bounds how long a server may take, on a machine that has much to do.
const startTime = 2 * time.Minute

// ready waits until the server answers. Its certificate is there only then.
func (m *machine) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var last error
	for {
		if last = m.ask(ctx); last == nil {
			return nil
		}
		select {
		case <-m.server.done:
			return fmt.Errorf("it has ended: %w", last)
		case <-ctx.Done():
			return last
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// trust has the administrator trust the certificate that the server has made. Whoever
// reads it by its name may find half of it, while it is being written.
func (m *machine) trust() error {
	name := filepath.Join(m.dir, "apiserver.crt")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return fmt.Errorf("%s has no certificate of an authority yet", name)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if cert.IsCA { // it comes last
			m.config.CAData = text
			return nil
		}
	}
}

func (m *machine) ask(ctx context.Context) error {
	if err := m.trust(); err != nil {
		return err
	}
	transport, err := rest.HTTPClientFor(m.config)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(m.config, transport)
	if err != nil {
		return err
	}
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	code := 0
	err = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default").Do(ctx).StatusCode(&code).Error()
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("namespace default: %d", code)
	}
	return err
}

// binaries returns the directory that holds them.
func binaries(t testing.TB) string {
	t.Helper()
	const how = "run `go run ./test/cluster/node build`, or set GATEHOUSE_KUBE_BIN to a directory with etcd and kube-apiserver"
	named := os.Getenv("GATEHOUSE_KUBE_BIN")
	dir := named
	if dir == "" {
		cache, err := cluster.Cache()
		if err != nil {
			t.Skip("no Kubernetes API server for this test: " + how)
		}
		dir = filepath.Join(cache, "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		_, err := os.Stat(filepath.Join(dir, name))
		switch {
		case err == nil:
		case named != "":
			t.Fatalf("GATEHOUSE_KUBE_BIN: %v", err)
		default:
			t.Skipf("no Kubernetes API server for this test (%v): %s", err, how)
		}
	}
	return dir
}

func serviceAccountKey(t testing.TB, dir string) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sa.key")
	write(t, file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	return key, file
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
