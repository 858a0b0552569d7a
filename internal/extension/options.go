package extension

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/trust"
)

// Options are one extension server, and what it is asked, as a configuration file has them.
type Options struct {
	// Name is what conditions, logs and metrics call it.
	Name string `json:"name"`
	// Address is unix:///PATH or HOST:PORT.
	Address string `json:"address"`
	TLS     TLS    `json:"tls,omitzero"`
	// Hooks are what it is asked about.
	Hooks []Hook `json:"hooks"`
	// FailureMode says what is sent while there is no usable answer.
	FailureMode FailureMode `json:"failureMode,omitempty"`
	// Encoding is that of the resources in questions.
	Encoding Encoding `json:"encoding,omitempty"`
	// Timeout of a call.
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// TLS says how a server is known, and what is shown to it. Files are read at each handshake.
type TLS struct {
	// CAFile has the authorities that its certificate may be of; empty for the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile have the certificate to show; empty for none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate; empty for the host of the address.
	ServerName string `json:"serverName,omitempty"`
	// Plaintext does without TLS, as unix sockets do unless there is a caFile.
	Plaintext bool `json:"plaintext,omitempty"`
}

// Hook is what a server is asked about.
type Hook string

// The hooks.
const (
	VirtualHost Hook = "VirtualHost"
	Listener    Hook = "Listener"
	Cluster     Hook = "Cluster"
)

// FailureMode says what becomes of a resource without a usable answer.
type FailureMode string

// The modes.
const (
	// Open, the default, sends it as it is without the extension.
	Open FailureMode = "Open"
	// Closed leaves it as it was sent last, or doesn't send it.
	Closed FailureMode = "Closed"
)

// Encoding is how resources are sent.
type Encoding string

// The encodings.
const (
	// Protobuf, the default, has Envoy's messages.
	Protobuf Encoding = "Protobuf"
	// JSON has their JSON, with fields in Envoy's own spelling.
	JSON Encoding = "JSON"
)

const (
	defaultTimeout = time.Second
	leastTimeout   = 10 * time.Millisecond
	mostTimeout    = 10 * time.Second
	maxExtensions  = 8
)

// Validate reports all that is wrong with a list of servers, each with its field.
func Validate(list []Options, path *field.Path) (errs field.ErrorList) {
	if len(list) > maxExtensions {
		errs = append(errs, field.TooMany(path, len(list), maxExtensions))
	}
	names := map[string]bool{}
	for i := range list {
		in := path.Index(i)
		if names[list[i].Name] {
			errs = append(errs, field.Duplicate(in.Child("name"), list[i].Name))
		}
		names[list[i].Name] = true
		errs = append(errs, list[i].validate(in)...)
	}
	return errs
}

func (o *Options) validate(path *field.Path) (errs field.ErrorList) {
	for _, wrong := range validation.IsDNS1123Label(o.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), o.Name, wrong))
	}
	host, port, err := net.SplitHostPort(o.Address)
	if socket, ok := strings.CutPrefix(o.Address, "unix://"); ok && !filepath.IsAbs(socket) || !ok && (err != nil || host == "" || port == "") {
		errs = append(errs, field.Invalid(path.Child("address"), o.Address, "must be HOST:PORT, or unix:// and an absolute path"))
	}
	t, in := o.TLS, path.Child("tls")
	if (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, field.Required(in.Child("keyFile"), "certFile and keyFile go together"))
	}
	if t.Plaintext && t != (TLS{Plaintext: true}) {
		errs = append(errs, field.Forbidden(in.Child("plaintext"), "without TLS there are no certificates"))
	}
	if len(o.Hooks) == 0 {
		errs = append(errs, field.Required(path.Child("hooks"), "say what the server is asked about"))
	}
	known := []Hook{VirtualHost, Listener, Cluster}
	for i, h := range o.Hooks {
		switch {
		case !slices.Contains(known, h):
			errs = append(errs, field.NotSupported(path.Child("hooks").Index(i), h, known))
		case slices.Contains(o.Hooks[:i], h):
			errs = append(errs, field.Duplicate(path.Child("hooks").Index(i), h))
		}
	}
	if modes := []FailureMode{Open, Closed}; o.FailureMode != "" && !slices.Contains(modes, o.FailureMode) {
		errs = append(errs, field.NotSupported(path.Child("failureMode"), o.FailureMode, modes))
	}
	if encodings := []Encoding{Protobuf, JSON}; o.Encoding != "" && !slices.Contains(encodings, o.Encoding) {
		errs = append(errs, field.NotSupported(path.Child("encoding"), o.Encoding, encodings))
	}
	if d := o.Timeout.Duration; d != 0 && (d < leastTimeout || d > mostTimeout) {
		errs = append(errs, field.Invalid(path.Child("timeout"), d.String(), "must be between 10ms and 10s"))
	}
	return errs
}

func (o *Options) timeout() time.Duration { return cmp.Or(o.Timeout.Duration, defaultTimeout) }

// hookOf returns the hook for the resources of a type, or for their parts; empty for none.
func hookOf(t envoy.Type) Hook {
	switch t { //nolint:exhaustive // others have none
	case envoy.Routes:
		return VirtualHost
	case envoy.Listeners:
		return Listener
	case envoy.Clusters:
		return Cluster
	}
	return ""
}

// maxMessage bounds questions and answers, in bytes.
const maxMessage = 16 << 20

// dial prepares a connection, which is made at once and again and again.
func (o *Options) dial() (*grpc.ClientConn, error) {
	secure, err := o.TLS.credentials(o.Address)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(secure),
		grpc.WithIdleTimeout(0), // a server that is lost has to be noticed
		// Its timeout is also that of what was sent and isn't acknowledged, after which a connection counts as lost whose other end
		// has gone without a word. Pings more often than each five minutes are refused by many servers.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("extension %s: %w", o.Name, err)
	}
	return conn, nil
}

func (t *TLS) credentials(address string) (credentials.TransportCredentials, error) {
	if t.Plaintext || strings.HasPrefix(address, "unix:") && t.CAFile == "" {
		return insecure.NewCredentials(), nil
	}
	config, err := trust.Server(t.CAFile, t.name(address))
	if err != nil {
		return nil, err
	}
	if t.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &c, err
		}
	}
	return credentials.NewTLS(config), nil
}

// name is what the certificate of a server has to say.
func (t *TLS) name(address string) string {
	switch host, _, err := net.SplitHostPort(address); {
	case t.ServerName != "":
		return t.ServerName
	case err != nil: // a unix socket
		return "localhost"
	default:
		return host
	}
}
