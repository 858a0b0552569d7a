package parameters

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// Place is where the proxies of Gateways run, which decides what settings are about.
type Place string

// The places.
const (
	Host Place = "host" // processes beside this one
	Pods Place = "pods" // provisioned in a cluster
)

// Provisioned are the settings of Gateways with pods where their parameters say
// nothing: what is served is logged, since nobody can ask for it after the fact.
func Provisioned() *v1alpha1.Settings {
	return &v1alpha1.Settings{AccessLog: []v1alpha1.AccessLog{{}}}
}

// checkProxy finds what Envoy would refuse of settings.
func checkProxy(s *v1alpha1.Settings) (errs field.ErrorList) {
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

// checkFleet finds what can't be put into effect of settings of pods.
func checkFleet(s *v1alpha1.Settings) (errs field.ErrorList) {
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
		Gateway: object.Name{Namespace: "namespace", Name: "name"}, XDSSocket: "/xds", AdminSocket: "/admin", PressureFile: "/pressure", Additions: additions,
	})
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil { // it isn't about that Gateway
			err = cause
		}
		return err
	}
	return envoy.CheckBootstrap(whole)
}
