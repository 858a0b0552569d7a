package cluster

import (
	"cmp"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/ingress"
)

// kindsFor are the kinds that a Cluster reads.
func kindsFor(opts Options) *kind.Table {
	switch {
	case opts.Kinds != nil:
		return opts.Kinds
	case opts.Config.Ingresses() != nil:
		return kind.WithIngresses
	}
	return kind.All
}

// ingressOptions are those of the source that serves Ingresses; nil if there is none.
func ingressOptions(cfg *configuration.Configuration) *ingress.Options {
	of := cfg.Ingresses()
	if of == nil {
		return nil
	}
	return &ingress.Options{
		Class: of.Class, Gateway: nameOf(of.Gateway), GatewayClass: cmp.Or(of.GatewayClass, pipeline.StandaloneClass),
		ConfigMap: nameOf(of.ConfigMap), DefaultCertificate: nameOf(of.DefaultCertificate),
	}
}

// nameOf reads NAMESPACE/NAME, which the configuration has checked; zero for nothing.
func nameOf(text string) object.Name {
	namespace, name, _ := strings.Cut(text, "/")
	return object.Name{Namespace: namespace, Name: name}
}

// ingresses makes objects of Ingresses; nil if they are no source.
func (c *Cluster) ingresses() (func(source.Batch) source.Batch, error) {
	options := ingressOptions(c.config)
	if options == nil {
		return nil, nil
	}
	s, err := ingress.New(*options)
	if err != nil {
		return nil, err
	}
	return s.Take, nil
}
