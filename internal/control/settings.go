package control

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// settings are the client options in the form of parameters, which may say
// otherwise for a Gateway.
func (o ClientOptions) settings() *v1alpha1.Settings {
	limits := v1alpha1.Limits{
		HeadersKiB: chosen(o.Limits.HeadersKiB), Headers: chosen(o.Limits.Headers), Streams: chosen(o.Limits.Streams), BufferKiB: chosen(o.Limits.BufferKiB),
		HeadersTimeout: duration(o.Limits.HeadersTimeout), IdleTimeout: duration(o.Limits.IdleTimeout), ConnectionDuration: duration(o.Limits.Duration),
	}
	return &v1alpha1.Settings{Client: &v1alpha1.Client{
		HTTP3: &o.HTTP3, ProxyProtocol: &o.ProxyProtocol, TrustedHops: chosen(o.TrustedHops), Limits: &limits,
	}}
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

// settle remembers the settings of Gateways whose parameters can be used, for the
// day when they can't. It lags one transaction behind: nobody needs it before.
func (p *Pipeline) settle(tx *flow.Tx) {
	for _, ch := range p.unsettled {
		switch {
		case !ch.Has:
			p.inputs.Settled.Delete(tx, ch.Key)
		case ch.New.Served() && !ch.New.ParametersHeld:
			p.inputs.Settled.Set(tx, ch.Key, topology.Settled{UID: ch.New.Object.UID, Settings: ch.New.Parameters})
		}
	}
	p.unsettled = nil
}

// unsettle notes what settle has to do.
func (p *Pipeline) unsettle(c *flow.Commit) {
	p.unsettled = append(p.unsettled, flow.Changes[object.Name, *topology.Gateway](c, p.graph.Gateways)...)
}

// provisionedSettings are those of Gateways with pods where their parameters say
// nothing: what is served is logged, since nobody can ask for it after the fact.
func provisionedSettings() *v1alpha1.Settings {
	return &v1alpha1.Settings{AccessLog: []v1alpha1.AccessLog{{}}}
}

// checkSettings finds what Envoy would refuse of settings.
func checkSettings(s *v1alpha1.Settings) (errs field.ErrorList) {
	at := field.NewPath("spec")
	for i := range s.AccessLog {
		log, at := &s.AccessLog[i], at.Child("accessLog").Index(i)
		if log.Text != nil {
			errs = append(errs, checkFormat(at.Child("text"), *log.Text)...)
		}
		for _, name := range slices.Sorted(maps.Keys(log.JSON)) {
			errs = append(errs, checkFormat(at.Child("json").Key(name), log.JSON[name])...)
		}
	}
	if s.Envoy != nil && s.Envoy.Bootstrap != nil {
		if err := checkBootstrap(s.Envoy.Bootstrap.Raw); err != nil {
			errs = append(errs, field.Invalid(at.Child("envoy", "bootstrap"), field.OmitValueType{}, err.Error()))
		}
	}
	return errs
}

// checkFleetSettings finds what can't be put into effect of settings of pods, beside
// what checkSettings does.
func checkFleetSettings(s *v1alpha1.Settings) field.ErrorList {
	errs := checkSettings(s)
	_, err := infra.Render(infra.Options{Image: "image", Authorities: []byte("authorities")}, &infra.Gateway{
		Name: object.Name{Namespace: "namespace", Name: "name"}, Class: "class", Settings: s,
		Ports: []infra.Port{{Port: 80, Target: 10080}},
	})
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error()))
	}
	return errs
}

func checkFormat(at *field.Path, format string) field.ErrorList {
	if err := envoy.CheckFormat(format); err != nil {
		return field.ErrorList{field.Invalid(at, format, err.Error())}
	}
	return nil
}

func checkBootstrap(additions []byte) error {
	whole, err := proxy.Bootstrap(proxy.BootstrapOptions{
		Gateway: "namespace/name", XDSSocket: "/xds", AdminSocket: "/admin", Additions: additions,
	})
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil { // it isn't about that Gateway
			err = cause
		}
		return err
	}
	return envoy.CheckBootstrap(whole)
}

// settingsOf returns the settings of a Gateway.
func (p *Pipeline) settingsOf(gateway object.Name) *v1alpha1.Settings {
	out := &v1alpha1.Settings{}
	p.engine.View(func(c *flow.Ctx) {
		if gw, ok := flow.Get(c, p.graph.Gateways, gateway); ok {
			out = gw.Parameters
		}
	})
	return out
}
