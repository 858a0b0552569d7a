package features

import (
	"fmt"
	"strings"

	"sigs.k8s.io/gateway-api/pkg/features"
)

const intro = `# Features

What of the Gateway API v1.7.0 works, by the names that the API gives its features.
Everything marked *yes* is tested with the real Envoy: the last column names the cases,
which are files in [` + "`test/e2e/testdata`" + `](../../test/e2e/testdata) with manifests, requests
and the answers that must come, or Go tests beside them. What is made in clusters is tested
with a real API server in [` + "`internal/apply`" + `](../../internal/apply) and
[` + "`internal/cluster`" + `](../../internal/cluster); *in clusters* marks what there is only where Gateways
get fleets. The features with a name are also in the status of every GatewayClass.

Kinds of Gatehouse itself have their own pages: AuthPolicy, [who may pass](../guide/auth.md),
RateLimitPolicy, [limits](../guide/limits.md), TrafficPolicy, [traffic](../guide/traffic.md),
RouteFilter, [filters of routes](../guide/route-filters.md), and GatewayParameters, [parameters](../guide/parameters.md).

The experimental channel is read with ` + "`--experimental`" + `.
`

// Markdown returns the list as docs/reference/features.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, s := range List {
		fmt.Fprintf(&b, "\n## %s\n\n| feature | channel | | notes | case |\n|---|---|---|---|---|\n", s.Title)
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.title(), r.channel(), r.verdict(), r.Note, r.cases())
		}
	}
	return b.String()
}

func (r Row) title() string {
	if r.Title != "" {
		return r.Title
	}
	names := make([]string, len(r.Features))
	for i, n := range r.Features {
		names[i] = string(n)
	}
	return strings.Join(names, ", ")
}

func (r Row) channel() string {
	if r.Experimental {
		return features.FeatureChannelExperimental
	}
	for _, name := range r.Features {
		if features.GetFeature(name).Channel == features.FeatureChannelExperimental {
			return features.FeatureChannelExperimental
		}
	}
	return features.FeatureChannelStandard
}

func (r Row) verdict() string {
	switch {
	case !r.Supported():
		return "no"
	case len(r.Modes) > 0 && !r.in(Host):
		return "in clusters"
	default:
		return "yes"
	}
}

func (r Row) cases() string {
	out := make([]string, len(r.Cases))
	for i, c := range r.Cases {
		out[i] = "`" + c + "`"
	}
	return strings.Join(out, ", ")
}
