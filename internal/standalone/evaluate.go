package standalone

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/local"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
)

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
	// UnsafeParameters lets GatewayParameters name files of this host.
	UnsafeParameters bool
}

// Evaluate computes what files become in standalone mode, without running
// anything. The result depends on the files alone, not on this machine.
func Evaluate(ctx context.Context, opts EvaluateOptions) (*pipeline.Pipeline, error) {
	if len(opts.Bind) == 0 {
		opts.Bind = []string{"127.0.0.1"}
	}
	options, err := pipelineOptions(opts.Bind, opts.PortOffset, opts.Client)
	if err != nil {
		return nil, err
	}
	options.Topology.Experimental = opts.Experimental
	options.Topology.UnsafeParameters = opts.UnsafeParameters
	options.Topology.LocalAddresses = nil
	options.NoProxies = true
	options.Topology.SystemAuthorities = proxy.DefaultAuthorities
	return evaluate(ctx, opts, options)
}

func evaluate(ctx context.Context, opts EvaluateOptions, options pipeline.Options) (*pipeline.Pipeline, error) {
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
	p := pipeline.New(options)
	if c := p.Apply(batch); len(c.Failures) > 0 {
		return nil, fmt.Errorf("a value could not be processed, please report this: %w", c.Failures[0])
	}
	return p, nil
}

// pipelineOptions returns the options of the pipeline behind `gatehouse run`.
func pipelineOptions(bind []string, offset int, client ClientOptions) (pipeline.Options, error) {
	addresses := make([]string, 0, len(bind))
	for _, b := range bind {
		ip, err := netip.ParseAddr(b)
		if err != nil {
			return pipeline.Options{}, fmt.Errorf("bind address %q: %w", b, err)
		}
		addresses = append(addresses, ip.String())
	}
	o := pipeline.Local(pipeline.ControllerName, proxy.Authorities(), addresses, client.settings())
	o.Topology.ImplicitClass = pipeline.StandaloneClass
	o.Topology.LocalAddresses = local.Addresses()
	o.Topology.SharedHost = true
	o.Topology.AnyName = true
	o.Topology.PortOffset = offset
	return o, nil
}
