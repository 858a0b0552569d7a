package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
)

// PublishedOptions say what of a cluster a config server publishes.
type PublishedOptions struct {
	REST       *rest.Config
	Namespaces []string // none means all
	Secrets    bool
	// ControllerName, if not empty, is that of clients that say what has become of objects: it is written into their
	// statuses.
	ControllerName string
	Log            *slog.Logger
}

// Published reads what of a cluster a config server publishes.
type Published struct {
	opts   PublishedOptions
	Kinds  *kind.Table
	cache  cache.Cache
	source *kube.Source
	writer *writer.Writer // nil without a ControllerName
	// Experimental says that the cluster has the experimental channel of the Gateway API.
	Experimental bool
}

// NewPublished asks the API server for what it serves.
func NewPublished(ctx context.Context, o PublishedOptions) (*Published, error) {
	p := &Published{opts: o, Kinds: publishedKinds(o.Secrets)}
	o.REST.UserAgent = "gatehouse"
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), p.Kinds.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	direct, err := client.NewWithWatch(o.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	channel, err := kube.Channel(ctx, direct)
	if err != nil {
		return nil, err
	}
	p.Experimental = channel == kube.Experimental
	options := kube.CacheOptions(p.Kinds, o.Namespaces...)
	options.Scheme = scheme
	if p.cache, err = cache.New(o.REST, options); err != nil {
		return nil, fmt.Errorf("watch the API server: %w", err)
	}
	from := kube.Options{
		Cache: p.cache, Client: direct, Kinds: p.Kinds, Namespaces: o.Namespaces, Experimental: p.Experimental, Log: o.Log,
	}
	if o.ControllerName != "" {
		p.writer = writer.New(writer.Options{
			Client: direct, Live: func(k object.Key) client.Object { return p.source.Live(k) }, Kinds: p.Kinds,
			ControllerName: o.ControllerName, FieldOwner: statusManager(o.ControllerName), Log: o.Log,
		})
		from.Changed = p.writer.Changed
	}
	p.source, err = kube.New(from)
	return p, err
}

// SetStatus says what has become of an object, as clients of a ControllerName say it; nil that there is nothing to say.
func (p *Published) SetStatus(k object.Key, status any) {
	if s := p.Kinds.StatusOf(k.Kind); s != nil && status != nil {
		status = s.Own(status, gwv1.GatewayController(p.opts.ControllerName))
	}
	p.writer.Set(k, status)
}

// publishedKinds are those that clients may read. Contents are read all: nobody here knows which of them are
// referred to.
func publishedKinds(secrets bool) *kind.Table {
	var rows []*kind.Descriptor
	for d := range kind.WithIngresses.Rows() {
		if d.Kind == kind.Secret && !secrets {
			continue
		}
		if d.Reading == kind.ByName {
			whole := *d
			whole.Reading, d = kind.Everywhere, &whole
		}
		rows = append(rows, d)
	}
	return kind.NewTable(rows...)
}

// Run reads until ctx ends. The first batch is everything.
func (p *Published) Run(ctx context.Context, apply func(source.Batch)) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	group.Go(func() error { return p.cache.Start(ctx) })
	if p.writer != nil {
		group.Go(func() error { return p.writer.Run(ctx) })
	}
	begun := false
	group.Go(func() error {
		err := p.source.Run(ctx, func(b source.Batch) {
			for name, why := range b.Unread {
				if why == "" {
					continue
				}
				p.opts.Log.Warn("objects of a kind can't be read", "kind", name, "error", why)
				if d := p.guards(name); d != nil && !begun {
					end(fmt.Errorf("%s say who may pass, and can't be read: %s; clients would be told that there are none: apply the CustomResourceDefinition", d, why))
					return
				}
			}
			begun = true
			b.Set = withoutPlatform(b.Set)
			apply(b)
		})
		if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
			return why
		}
		return err
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// guards is a kind of a name that says who may pass; nil for others.
func (p *Published) guards(name string) *kind.Descriptor {
	for d := range p.Kinds.Rows() {
		if d.Guards && d.Kind.Name() == name {
			return d
		}
	}
	return nil
}

// withoutPlatform leaves out contents that are the platform's own, such as tokens of ServiceAccounts, Helm's
// releases and keys of registries. A type doesn't change.
func withoutPlatform(list []source.Object) (out []source.Object) {
	for _, o := range list {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			if o.Name == "kube-root-ca.crt" {
				continue
			}
		case *corev1.Secret:
			switch o.Type {
			case "", corev1.SecretTypeOpaque, corev1.SecretTypeTLS, corev1.SecretTypeBasicAuth:
			default:
				continue
			}
		}
		out = append(out, o)
	}
	return out
}
