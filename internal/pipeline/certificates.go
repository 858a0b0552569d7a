package pipeline

import (
	"time"

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
			delete(p.pairs.until, ch.Key)
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

// noteSecrets starts the grace of Secrets that are deleted. Only a pair that can be used
// ends it: a Secret made anew without one must not bring back what was deleted.
func (p *Pipeline) noteSecrets(tx *flow.Tx, b source.Batch) {
	for _, k := range b.Deleted {
		if _, already := p.pairs.until[k.Name]; k.Kind == kind.Secret && !already && p.pairs.last[k.Name] != nil {
			until := p.now.Add(topology.CertificateGrace)
			p.pairs.until[k.Name] = until
			p.Inputs.KeptCertificates.Set(tx, k.Name, topology.KeptCertificate{Pair: p.pairs.last[k.Name], Until: until})
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
