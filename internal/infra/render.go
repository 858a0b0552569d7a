package infra

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Options are what all fleets of a controller have in common.
type Options struct {
	// ControllerName is that of the controller's GatewayClasses.
	ControllerName string
	// Image is what proxies run where their parameters don't say otherwise.
	Image string
	// PullPolicy says when that is fetched, where their parameters don't; empty is the
	// cluster's default.
	PullPolicy corev1.PullPolicy
	// ControllerNamespace and ControllerService name the Service of the controller.
	ControllerNamespace string
	ControllerService   string
	XDSPort, APIPort    int // of that Service
	Places              Places
	// Authorities are the certificates, PEM, by which proxies know their controller.
	Authorities []byte
}

// fleet is what the objects of a Gateway are rendered from.
type fleet struct {
	*Gateway
	options   *Options
	namespace string
	name      string // of all objects but those of one revision
	live      string // of the workload that clients are led to
	settings  *v1alpha1.Settings
}

// Render returns the objects of a Gateway's fleet that there is nothing of yet. The result
// depends on the arguments alone. The errors are those of parameters that can't be
// put into effect.
func Render(o Options, g *Gateway) ([]*unstructured.Unstructured, error) {
	f, err := New(o, g)
	if err != nil {
		return nil, err
	}
	return f.Objects(Plan{})
}

func (f *fleet) serviceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: f.meta(nil, nil),
		// Proxies need nothing of the API server. The token by which the controller
		// knows them is mounted by itself.
		AutomountServiceAccountToken: new(false),
	}
}

// These are the keys of the ConfigMap.
const (
	AuthoritiesKey = "ca.crt"
	bootstrapKey   = "bootstrap.json"
)

// configMap is what the pods of a fleet start with; the bootstrap configuration is of one revision.
func (f *fleet) configMap(whole bool) *corev1.ConfigMap {
	data := map[string]string{AuthoritiesKey: string(f.options.Authorities)}
	if b := f.bootstrap(); b != nil && whole {
		data[bootstrapKey] = string(b)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: f.meta(nil, nil),
		Data:       data,
	}
}

// bootstrap returns what is merged into the configuration that Envoy starts with;
// nil for nothing.
func (f *fleet) bootstrap() []byte {
	if e := f.settings.Envoy; e != nil && e.Bootstrap != nil {
		return e.Bootstrap.Raw
	}
	return nil
}

// meta is the metadata of an object, with further labels and annotations beside
// those that all objects have.
func (f *fleet) meta(labels, annotations map[string]string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace:   f.namespace,
		Name:        f.name,
		Labels:      f.labels(labels),
		Annotations: f.annotations(annotations),
	}
	// A Gateway from a file has no UID: the cluster doesn't know it. Nothing can be owned from another namespace.
	if f.UID != "" && !f.isElsewhere() {
		out.OwnerReferences = []metav1.OwnerReference{OwnedBy(f.Name, f.UID)}
	}
	return out
}

// isElsewhere reports whether the fleet is in another namespace than its Gateway.
func (f *fleet) isElsewhere() bool { return f.namespace != f.Name.Namespace }

// ownLabels are those that we find our objects by.
func (f *fleet) ownLabels() map[string]string {
	out := Labels(f.Name, f.Class)
	out[InstanceLabel] = f.name
	if f.isElsewhere() {
		out[NamespaceLabel] = f.Name.Namespace
	}
	return out
}

// OwnedBy has an object go with its Gateway.
func OwnedBy(gateway object.Name, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: gwv1.GroupVersion.String(), Kind: GatewayKind, Name: gateway.Name, UID: uid, Controller: new(true),
	}
}

// labels are those of spec.infrastructure, overlaid by further ones and by those
// that we find our objects by.
func (f *fleet) labels(further map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, f.Labels)
	maps.Copy(out, further)
	maps.Copy(out, f.ownLabels())
	return out
}

func (f *fleet) annotations(further map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, f.Annotations)
	maps.Copy(out, further)
	maps.Copy(out, map[string]string{
		GatewayAnnotation: f.Name.String(), classAnnotation: f.Class, ControllerAnnotation: f.options.ControllerName,
	})
	if f.isElsewhere() && f.UID != "" {
		out[gatewayUIDAnnotation] = string(f.UID)
	}
	return out
}
