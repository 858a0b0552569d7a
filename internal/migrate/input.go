package migrate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Input is what is converted.
type Input struct {
	Ingresses []*networkingv1.Ingress
	Classes   []*networkingv1.IngressClass
	// Services tell the numbers of ports that have names.
	Services []*corev1.Service
	// Secrets tell which passwords are written in a way that can't be read. Without them that isn't told.
	Secrets []*corev1.Secret
	// ConfigMaps are those that annotations name.
	ConfigMaps []*corev1.ConfigMap
	// Config is the ConfigMap of the controller; nil for its defaults.
	Config *corev1.ConfigMap
}

// Options say what the result is called, and which Ingresses it is made of.
type Options struct {
	// Class is the class whose Ingresses are converted; those that name no class are too.
	Class string
	// Gateway is the one that all routes are for, and GatewayClass its class.
	Gateway      types.NamespacedName
	GatewayClass string
	// DefaultCertificate is the Secret for hosts whose Ingress names none; zero for nothing.
	DefaultCertificate types.NamespacedName
	// NoConfig says that the controller has no ConfigMap, and Cluster that all was read from a cluster.
	NoConfig, Cluster bool
}

// Controller is the controller of the classes that ingress-nginx serves.
const Controller = "k8s.io/ingress-nginx"

// The names of what says that an Ingress is for ingress-nginx.
const (
	classAnnotation = "kubernetes.io/ingress.class"
	prefix          = "nginx.ingress.kubernetes.io/"
)

// serves reports whether an Ingress is of the class.
func (c *conversion) serves(in *networkingv1.Ingress) bool {
	name := ClassOf(in)
	if name == "" || name == c.options.Class {
		return true
	}
	return slices.ContainsFunc(c.input.Classes, func(class *networkingv1.IngressClass) bool {
		return class.Name == name && class.Spec.Controller == Controller
	})
}

// ingress is one that is converted.
type ingress struct {
	*networkingv1.Ingress
	parts parts
}

func (in *ingress) name() string { return in.Namespace + "/" + in.Name }

// annotation returns what an annotation of ingress-nginx says; empty for nothing.
func (in *ingress) annotation(name string) string {
	return strings.TrimSpace(in.Annotations[prefix+name])
}

// isTrue reports whether a switch is on, by default where nothing is said.
func (in *ingress) isTrue(name string, otherwise bool) bool {
	return isOn(in.annotation(name), otherwise)
}

// isOn reads a switch as ingress-nginx does, which takes what it can't read for nothing.
func isOn(text string, otherwise bool) bool {
	if on, err := strconv.ParseBool(text); err == nil {
		return on
	}
	return otherwise
}

// isCanary reports whether an Ingress only adds backends to what others serve.
func (in *ingress) isCanary() bool { return in.isTrue("canary", false) }

// byAge is the order in which ingress-nginx takes Ingresses: of two with one path the older one has it, and of
// equally old ones the last by name.
func byAge(a, b *ingress) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.name(), a.name()))
}

func (c *conversion) hasService(namespace, name string) bool {
	return slices.ContainsFunc(c.input.Services, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
}

// port finds the number of a Service's port.
func (c *conversion) port(namespace string, of *networkingv1.IngressServiceBackend) (int32, bool) {
	if of.Port.Name == "" {
		return of.Port.Number, true
	}
	for _, s := range c.input.Services {
		if s.Namespace != namespace || s.Name != of.Name {
			continue
		}
		for _, p := range s.Spec.Ports {
			if p.Name == of.Port.Name {
				return p.Port, true
			}
		}
	}
	return 0, false
}

// portName is the name of a Service's port; empty if it has none, or isn't known.
func (c *conversion) portName(namespace, service string, number int32) string {
	for _, s := range c.input.Services {
		if s.Namespace != namespace || s.Name != service {
			continue
		}
		for _, p := range s.Spec.Ports {
			if p.Port == number {
				return p.Name
			}
		}
	}
	return ""
}

// PasswordSecret is the Secret of an Ingress's namespace with names and passwords; empty for none.
func PasswordSecret(in *networkingv1.Ingress) string {
	namespace, name, ok := strings.Cut((&ingress{Ingress: in}).annotation("auth-secret"), "/")
	switch {
	case !ok:
		return namespace
	case namespace == in.Namespace:
		return name
	}
	return ""
}

// ConfigMaps are those that an Ingress names.
func ConfigMaps(in *networkingv1.Ingress) (out []types.NamespacedName) {
	if namespace, name, ok := strings.Cut(HeadersConfigMap(in), "/"); ok {
		out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return out
}

// ClassOf is the class that an Ingress names; empty for none.
func ClassOf(in *networkingv1.Ingress) string {
	if in.Spec.IngressClassName != nil {
		return *in.Spec.IngressClassName
	}
	return in.Annotations[classAnnotation]
}

// HeadersConfigMap is the ConfigMap, NAMESPACE/NAME, with headers for the answers of an Ingress.
func HeadersConfigMap(in *networkingv1.Ingress) string {
	return (&ingress{Ingress: in}).annotation("custom-headers")
}
