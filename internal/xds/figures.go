package xds

import (
	"context"

	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
)

// counting takes proxies' figures beside a discovery.
type counting struct {
	otlpcollectorv1.UnimplementedMetricsServiceServer
	of *discovery
}

// Export takes one report. Whose it is, its connection tells.
func (c *counting) Export(ctx context.Context, r *otlpcollectorv1.ExportMetricsServiceRequest) (*otlpcollectorv1.ExportMetricsServiceResponse, error) {
	g := c.of.gateway
	if g == nil {
		conn, err := connectionOf(ctx)
		if err != nil {
			return nil, err
		}
		g = c.of.server.enter(conn.gateway, conn.revision())
		defer c.of.server.leave(g)
	}
	c.of.server.figures.Take(g.name, r)
	return &otlpcollectorv1.ExportMetricsServiceResponse{}, nil
}
