package translate

import (
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Secret returns what a proxy is given of a certificate; nil where there is nothing to
// give.
func Secret(c *topology.Certificate) *ir.Secret {
	if !c.Usable() {
		return nil
	}
	return &ir.Secret{Name: ir.Certificate(c.Name), Certificate: c.Chain, Key: c.Key}
}
