package proxy

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// DefaultDrainTimeout bounds the wait for clients when Run stops Envoy.
	DefaultDrainTimeout = 5 * time.Second
	// DefaultLogLevel shows Envoy's life and what is wrong, no traffic.
	DefaultLogLevel = "info"
)

// Config describes the Envoy of one Gateway.
type Config struct {
	// Gateway is whose Envoy it is.
	Gateway object.Name
	// Dir is for this Gateway alone, and the same after a restart of the
	// control plane, or a running Envoy isn't found again. An absolute path,
	// short enough for CheckSocketPath(Dir/admin.sock). Created with mode 0700.
	Dir string
	// Binary is what Find or Install has returned.
	Binary Binary
	// XDSSocket is the control plane's Unix socket, an absolute path.
	XDSSocket string
	// Concurrency is the number of worker threads; 0 is one per CPU.
	Concurrency int
	// DrainTimeout bounds the wait for connections to end before Envoy is
	// stopped; 0 is DefaultDrainTimeout, a negative one is an error. Connections
	// on which there has been no request for 5 s are not waited for.
	DrainTimeout time.Duration
	// BackendStats keeps statistics of every backend: they double its memory.
	BackendStats bool
	// Additions are merged into the bootstrap, see BootstrapOptions.
	Additions []byte
	// Stdout is what Envoy gets as its standard output, which it prints access
	// logs to. nil is Dir/envoy.log, where its own log is in any case.
	Stdout *os.File
	// LogLevel is Envoy's (trace … critical, off); empty is DefaultLogLevel.
	LogLevel string
	// Prepare is called before each start of Envoy, from the goroutine of Run,
	// for what Envoy needs from others, such as the xDS socket; Dir exists. An
	// error is a start that has failed, and tried again. nil is allowed.
	Prepare func() error
	// Reachable says whether the control plane can take figures; nil is always.
	Reachable func() bool
	// Log gets what happens to the process; nil is slog.Default.
	Log *slog.Logger
	// Output gets each line that Envoy prints, one call at a time, and holds
	// up the following lines until it returns; nil drops them. They are in
	// Dir/envoy.log too, which is emptied when it exceeds 16 MiB.
	Output func(Line)
	// OnState gets each change of the state, in order, from the goroutine of
	// Run, which it holds up; nil is allowed.
	OnState func(State)
}

func (c Config) check() error {
	if c.DrainTimeout < 0 {
		return fmt.Errorf("the drain timeout %s is negative", c.DrainTimeout)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.LogLevel == "" {
		c.LogLevel = DefaultLogLevel
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Output == nil {
		c.Output = func(Line) {}
	}
	if c.Prepare == nil {
		c.Prepare = func() error { return nil }
	}
	return c
}
