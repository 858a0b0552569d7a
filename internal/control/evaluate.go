package control

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ControllerName is the controllerName of the GatewayClasses that are ours.
const ControllerName = "gatehouse.dev/controller"

// StandaloneClass is the class that works in standalone mode without an object.
const StandaloneClass = "gatehouse"

// ClientOptions say how clients are served.
type ClientOptions struct {
	ir.Client
	HTTP3 bool // on HTTPS listeners that don't say otherwise
}

// EvaluateOptions say what files to evaluate, and how.
type EvaluateOptions struct {
	Paths        []string
	Stdin        io.Reader
	Experimental bool
	Bind         []string // nil is 127.0.0.1
	PortOffset   int
	Client       ClientOptions
}

// Evaluate computes what files become in standalone mode, without running
// anything. The result depends on the files alone, not on this machine.
func Evaluate(ctx context.Context, opts EvaluateOptions) (*Pipeline, error) {
	if len(opts.Bind) == 0 {
		opts.Bind = []string{"127.0.0.1"}
	}
	options, err := standalonePipeline(opts.Bind, opts.PortOffset, opts.Client)
	if err != nil {
		return nil, err
	}
	options.Topology.Experimental = opts.Experimental
	options.Topology.LocalAddresses = nil
	options.Topology.SystemAuthorities = proxy.DefaultAuthorities
	files, err := file.New(file.Options{
		Paths: opts.Paths, Stdin: opts.Stdin, Experimental: opts.Experimental, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	batch, err := files.Load(ctx)
	if err != nil {
		return nil, err
	}
	p := NewPipeline(options)
	if c := p.Apply(batch); len(c.Failures) > 0 {
		return nil, fmt.Errorf("a value could not be processed, please report this: %w", c.Failures[0])
	}
	return p, nil
}

// standalonePipeline returns the options of the pipeline behind `gatehouse run`.
func standalonePipeline(bind []string, offset int, client ClientOptions) (Options, error) {
	addresses := make([]string, 0, len(bind))
	for _, b := range bind {
		ip, err := netip.ParseAddr(b)
		if err != nil {
			return Options{}, fmt.Errorf("bind address %q: %w", b, err)
		}
		addresses = append(addresses, ip.String())
	}
	return Options{
		Addresses: addresses,
		Topology: topology.Options{
			ControllerName:    ControllerName,
			ImplicitClass:     StandaloneClass,
			LocalAddresses:    localAddresses(),
			SharedHost:        true,
			DefaultAddresses:  addresses,
			SystemAuthorities: proxy.Authorities(),
			PortOffset:        offset,
			CheckSettings:     checkSettings,
			Settings:          client.settings(),
		},
	}, nil
}

// localAddresses returns a test for the addresses that this host can bind, as
// they are now: all of loopback's and those of its interfaces.
func localAddresses() func(string) bool {
	own := map[netip.Addr]bool{}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				own[prefix.Addr().Unmap()] = true
			}
		}
	}
	return func(s string) bool {
		ip, err := netip.ParseAddr(s)
		return err == nil && (own[ip.Unmap()] || ip.Is4() && ip.IsLoopback() || ip.IsUnspecified())
	}
}
