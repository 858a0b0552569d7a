package translate

import (
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Secret returns what a proxy is given of a certificate; nil where the certificate
// has a problem.
func Secret(c *topology.Certificate) *ir.Secret {
	if c.Problem != "" {
		return nil
	}
	return &ir.Secret{Name: ir.Certificate(c.Name), Certificate: c.Chain, Key: c.Key}
}
