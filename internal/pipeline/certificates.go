package pipeline

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// pairs are what is in Inputs.KeptCertificates: the last pair of each Secret that could be
// used.
type pairs struct {
	changed []flow.Change[object.Name, *topology.Certificate] // since the last transaction with batches
	last    map[object.Name]*topology.Certificate
	until   map[object.Name]time.Time // of Secrets that were deleted
}

// keepCertificates remembers the pairs that can be used, for the day when their Secrets
// hold none or are deleted. It lags one transaction behind, as keep does. What
// nobody refers to any more, or may not, is forgotten: it is no mistake.
func (p *Pipeline) keepCertificates(tx *flow.Tx) {
	for _, ch := range p.pairs.changed {
		switch {
		case !ch.Has:
			p.forgetCertificate(tx, ch.Key)
		case ch.New.Problem == "":
			p.pairs.last[ch.Key] = ch.New
			p.Inputs.KeptCertificates.Set(tx, ch.Key, topology.KeptCertificate{Pair: ch.New})
		}
	}
	p.pairs.changed = nil
	for name, until := range p.pairs.until {
		if !p.now.Before(until) {
			p.forgetCertificate(tx, name)
		}
	}
}

func (p *Pipeline) forgetCertificate(tx *flow.Tx, secret object.Name) {
	delete(p.pairs.last, secret)
	delete(p.pairs.until, secret)
	p.Inputs.KeptCertificates.Delete(tx, secret)
}

// noteSecrets starts the grace of Secrets that are deleted, and ends that of those that
// are there again.
func (p *Pipeline) noteSecrets(tx *flow.Tx, b source.Batch) {
	note := func(name object.Name, until time.Time) {
		p.Inputs.KeptCertificates.Set(tx, name, topology.KeptCertificate{Pair: p.pairs.last[name], Until: until})
	}
	for _, k := range b.Deleted {
		if _, already := p.pairs.until[k.Name]; k.Kind == kind.Secret && !already && p.pairs.last[k.Name] != nil {
			p.pairs.until[k.Name] = p.now.Add(topology.CertificateGrace)
			note(k.Name, p.pairs.until[k.Name])
		}
	}
	if len(p.pairs.until) == 0 {
		return
	}
	for _, o := range b.Set {
		name := object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
		if _, deleted := p.pairs.until[name]; !deleted {
			continue
		}
		if _, ok := o.(*corev1.Secret); ok {
			delete(p.pairs.until, name)
			note(name, time.Time{})
		}
	}
}

// CertificateEnds yields when the first certificate of each listener that serves TLS
// expires.
func (p *Pipeline) CertificateEnds(yield func(topology.ListenerKey, time.Time) bool) {
	p.Engine.View(func(c *flow.Ctx) {
		for _, table := range []flow.Table[topology.ListenerKey, *topology.Listener]{p.Graph.Listeners, p.Graph.SetListeners} {
			for k, l := range flow.All(c, table) {
				if end, ok := l.CertificateEnd(); ok && l.Serves && !yield(k, end) {
					return
				}
			}
		}
	})
}
