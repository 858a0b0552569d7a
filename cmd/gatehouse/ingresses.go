package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/ingress"
)

// ingressFlags say whether Ingresses are served as they are.
type ingressFlags struct{ class, gateway, configMap, certificate string }

func (f *ingressFlags) define(fl *pflag.FlagSet) {
	fl.StringVar(&f.class, "ingress-class", "", "serve Ingresses of this class too, as ingress-nginx does; empty for none")
	fl.StringVar(&f.gateway, "ingress-gateway", "default/ingress", "NAMESPACE/NAME of the Gateway that is made for them")
	fl.StringVar(&f.configMap, "ingress-configmap", "", "NAMESPACE/NAME of the ConfigMap of ingress-nginx's controller, whose defaults hold without it")
	fl.StringVar(&f.certificate, "ingress-default-certificate", "", "NAMESPACE/NAME of the Secret for hosts whose Ingress names none in its tls")
}

// options are nil where no Ingresses are served.
func (f *ingressFlags) options() (*ingress.Options, error) {
	if f.class == "" {
		return nil, nil
	}
	o := &ingress.Options{Class: f.class, GatewayClass: pipeline.StandaloneClass}
	for _, of := range []struct {
		flag, text string
		to         *object.Name
	}{
		{"ingress-gateway", f.gateway, &o.Gateway}, {"ingress-configmap", f.configMap, &o.ConfigMap},
		{"ingress-default-certificate", f.certificate, &o.DefaultCertificate},
	} {
		namespace, name, ok := strings.Cut(of.text, "/")
		if !ok && of.text != "" || of.flag == "ingress-gateway" && name == "" {
			return nil, usageError{fmt.Errorf("--%s: %q is not NAMESPACE/NAME", of.flag, of.text)}
		}
		*of.to = object.Name{Namespace: namespace, Name: name}
	}
	return o, nil
}
