package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// memberFlags say which fleet a pod is of, and how its controller and it know each other.
type memberFlags struct {
	gateway, controller string
	name                object.Name // the Gateway's, once check has passed
	apiPort             int
	tokenFile, caFile   string
	health              string
}

// add declares the flags; gateway says what the one of this name is for.
func (f *memberFlags) add(fl *pflag.FlagSet, gateway string) {
	fl.StringVar(&f.gateway, "gateway", "", gateway+", as NAMESPACE/NAME")
	fl.StringVar(&f.controller, "controller", "", "host name of the controller's Service; its certificate must be for that name")
	boundedVar(fl, &f.apiPort, "api-port", 18001, 1, maxPort, "the controller's port for certificates")
	fl.StringVar(&f.tokenFile, "token-file", "/var/run/secrets/gatehouse.dev/token/token", "the pod's ServiceAccount token, with the audience gatehouse.dev")
	fl.StringVar(&f.caFile, "ca-file", "/var/run/secrets/gatehouse.dev/ca/ca.crt", "the certificates of the controller's authority")
	fl.StringVar(&f.health, "health", ":19001", "address for /healthz, /readyz and /metrics")
}

func (f *memberFlags) check() error {
	var ok bool
	if f.name, ok = object.ParseName(f.gateway); !ok {
		return usageError{fmt.Errorf("--gateway: %q is not NAMESPACE/NAME", f.gateway)}
	}
	if f.controller == "" {
		return usageError{errors.New("--controller: name the controller's host")}
	}
	return nil
}
