package standalone

import (
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// settings are the client options in the form of parameters, which may say
// otherwise for a Gateway.
func (o ClientOptions) settings() *v1alpha1.Settings {
	limits := v1alpha1.Limits{
		HeadersKiB: chosen(o.Limits.HeadersKiB), Headers: chosen(o.Limits.Headers), Streams: chosen(o.Limits.Streams), BufferKiB: chosen(o.Limits.BufferKiB),
		HeadersTimeout: duration(o.Limits.HeadersTimeout), IdleTimeout: duration(o.Limits.IdleTimeout), ConnectionDuration: duration(o.Limits.Duration),
	}
	return &v1alpha1.Settings{Client: &v1alpha1.Client{
		HTTP3: &o.HTTP3, ProxyProtocol: &o.ProxyProtocol, TrustedHops: chosen(o.TrustedHops), HTTP10: &o.HTTP10, Limits: &limits,
		Paths: o.paths(),
	}}
}

func (o ClientOptions) paths() *v1alpha1.Paths {
	if o.Paths == (ir.Paths{}) {
		return nil
	}
	out := &v1alpha1.Paths{}
	out.MergeSlashes = new(!o.Paths.KeepDoubled)
	if o.Paths.Escaped != ir.RejectEscaped {
		out.EscapedSlashes = new(v1alpha1.EscapedSlashes(o.Paths.Escaped))
	}
	return out
}

func chosen(n uint32) *int32 {
	if n == 0 {
		return nil
	}
	return new(int32(n)) //nolint:gosec // flags are bounded
}

func duration(d time.Duration) *gwv1.Duration {
	if d == 0 {
		return nil
	}
	return new(gwv1.Duration(d.String()))
}
