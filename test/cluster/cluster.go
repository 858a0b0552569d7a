package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// ErrNone is wrapped by what Open returns when there is no cluster.
var ErrNone = errors.New("no cluster")

// Cluster is a Kubernetes to test with.
type Cluster struct {
	// Kubeconfig is the path of a file with an administrator's credentials.
	Kubeconfig string
	// Dir has the node's logs, the API server's audit log among them. Empty
	// for a cluster that KUBECONFIG names.
	Dir string

	pid int // of the node; its network is the cluster's. 0: that of this process is.
}

// Open finds the cluster: the one that KUBECONFIG names, or the running one that
// `make cluster` made, of the name in GATEHOUSE_CLUSTER.
func Open() (*Cluster, error) {
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return &Cluster{Kubeconfig: path}, nil
	}
	dir, err := Dir(Name())
	if err != nil {
		return nil, err
	}
	return OpenDir(dir)
}

// OpenDir is the running cluster whose directory this is.
func OpenDir(dir string) (*Cluster, error) {
	s, err := ReadState(dir)
	if err != nil {
		return nil, err
	}
	return &Cluster{Kubeconfig: filepath.Join(dir, "admin.conf"), Dir: dir, pid: s.PID}, nil
}

// Config is for Kubernetes clients. They may be in this process: its connections
// begin in the cluster's network.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(c.Kubeconfig)},
		&clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	if c.pid != 0 {
		config.Dial = c.Dial
	}
	return config, nil
}

// Client is for all kinds of objects. The API server may slow it down, nothing else.
func (c *Cluster) Client() (client.WithWatch, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kind.All.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Dial connects as a program on the node would: to Services of any type, to pods
// and to the API server, each by its IP address.
func (c *Cluster) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = c.in(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Start starts a command in the cluster's network, with KUBECONFIG set. The
// caller waits for it.
func (c *Cluster) Start(cmd *exec.Cmd) error {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	return c.in(cmd.Start)
}

// in runs f in the cluster's network.
func (c *Cluster) in(f func() error) error {
	if c.pid == 0 {
		return f()
	}
	return inNetwork(fmt.Sprintf("/proc/%d/ns/net", c.pid), f)
}

// Name is the cluster's among those that `make cluster` makes.
func Name() string {
	if name := os.Getenv("GATEHOUSE_CLUSTER"); name != "" {
		return name
	}
	return "default"
}

// Cache is where binaries and images are kept, beside the Envoy of `gatehouse
// envoy install`.
func Cache() (string, error) {
	dir := os.Getenv("GATEHOUSE_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache directory: %w: set GATEHOUSE_CACHE", err)
		}
		dir = filepath.Join(user, "gatehouse")
	}
	return filepath.Abs(filepath.Join(dir, "cluster"))
}

// Dir has all that a cluster of that name keeps: keys, data, logs.
func Dir(name string) (string, error) {
	cache, err := Cache()
	return filepath.Join(cache, "nodes", name), err
}

// State is what a running cluster says of itself.
type State struct {
	PID      int    `json:"pid"` // of the node's first process
	Channel  string `json:"channel"`
	Checkout string `json:"checkout"` // who brought it up
}

const stateFile = "state.json"

// ReadState says what runs; its error wraps ErrNone if nothing does.
func ReadState(dir string) (State, error) {
	var s State
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%w %q runs on this machine: bring it up with `make cluster`, or name one with KUBECONFIG", ErrNone, filepath.Base(dir))
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	if !locked(dir) {
		return s, fmt.Errorf("%w %q runs any more: `make cluster-down` removes what it left", ErrNone, filepath.Base(dir))
	}
	return s, nil
}

// WriteState is for the command that brings a cluster up.
func WriteState(dir string, s State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	partial := filepath.Join(dir, stateFile+".partial")
	if err := os.WriteFile(partial, data, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(dir, stateFile))
}
