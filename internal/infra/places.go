package infra

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Places are the namespaces in which the objects of fleets are. With the zero value those of each fleet are in the
// namespace of its Gateway.
//
// Whose fleet an object is of follows from its annotation only in these namespaces: in its own one, a tenant could
// have an object say anything.
type Places struct {
	// Namespace is that of all fleets; empty for that of each one's Gateway.
	Namespace string
	// Former are namespaces that fleets have been in and are to leave. OfGateways stands for those of Gateways.
	Former []string
}

// OfGateways in Places.Former says that fleets have been in the namespaces of their Gateways.
const OfGateways = "*"

// gatewayUIDAnnotation is on objects in another namespace than their Gateway's, which it can't own.
const gatewayUIDAnnotation = "gatehouse.dev/gateway-uid"

// Of is the namespace in which the fleet of a Gateway is to be.
func (p Places) Of(gateway object.Name) string {
	if p.Namespace != "" {
		return p.Namespace
	}
	return gateway.Namespace
}

// All are the namespaces in which objects of a Gateway's fleet may be, first that in which they are to be.
func (p Places) All(gateway object.Name) []string {
	out := []string{p.Of(gateway)}
	for _, former := range p.Former {
		if former == OfGateways {
			former = gateway.Namespace
		}
		if !slices.Contains(out, former) {
			out = append(out, former)
		}
	}
	return out
}

// Has reports whether objects of a Gateway's fleet may be in a namespace.
func (p Places) Has(gateway object.Name, namespace string) bool {
	return slices.Contains(p.All(gateway), namespace)
}

// Watched are the namespaces in which objects of any fleet may be, where Gateways may be in some namespaces; none
// stands for all, in both.
func (p Places) Watched(gateways []string) []string {
	if p.Namespace == "" || slices.Contains(p.Former, OfGateways) {
		if len(gateways) == 0 {
			return nil
		}
	} else {
		gateways = nil
	}
	out := slices.Clone(gateways)
	for _, namespace := range append([]string{p.Namespace}, p.Former...) {
		if namespace != "" && namespace != OfGateways && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	return out
}

// Name names the objects of a Gateway's fleet.
func (p Places) Name(gateway object.Name, class string) object.Name {
	namespace := p.Of(gateway)
	return object.Name{Namespace: namespace, Name: nameIn(namespace, gateway, class)}
}

// LimitsName names the objects that count requests for a Gateway.
func (p Places) LimitsName(gateway object.Name, class string) object.Name {
	namespace := p.Of(gateway)
	return object.Name{Namespace: namespace, Name: limitsNameIn(namespace, gateway, class)}
}

// PreviewName names the Service that leads to proxies which wait for their promotion.
func (p Places) PreviewName(gateway object.Name, class string) object.Name {
	namespace := p.Of(gateway)
	return object.Name{Namespace: namespace, Name: partIn(namespace, gateway, class, "preview")}
}

// GatewayOf names the Gateway whose fleet a live object belongs to; false where it
// belongs to none.
func (p Places) GatewayOf(o metav1.Object) (object.Name, bool) {
	if labels := o.GetLabels(); labels[PartOfLabel] != "" || labels[SetIDLabel] != "" {
		return object.Name{}, false
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		if isGateway(owner) {
			gateway := object.Name{Namespace: o.GetNamespace(), Name: owner.Name}
			return gateway, p.Has(gateway, o.GetNamespace())
		}
		if _, pod := o.(*corev1.Pod); !pod { // pods are their Deployment's
			return object.Name{}, false
		}
	}
	if o.GetLabels()[ManagedByLabel] != ManagedBy {
		return object.Name{}, false
	}
	gateway, ok := object.ParseName(o.GetAnnotations()[GatewayAnnotation])
	if !ok || !p.Has(gateway, o.GetNamespace()) {
		return object.Name{}, false
	}
	return gateway, true
}

// OfFleet names the Gateway that a live object belongs to, if the object is part of a
// fleet of the controller with this name. The fleet may be that of the Gateway's class
// or of a former class, and in a former namespace.
func (p Places) OfFleet(o metav1.Object, controllerName string) (object.Name, bool) {
	gateway, ok := p.GatewayOf(o)
	return gateway, ok && o.GetAnnotations()[ControllerAnnotation] == controllerName && o.GetName() == fleetOf(o, gateway)
}

// OfRevision reports whether a live object of a Gateway belongs to one revision of its proxies, and
// goes when that does.
func (p Places) OfRevision(o metav1.Object) bool {
	gateway, ok := p.GatewayOf(o)
	return ok && o.GetLabels()[RevisionLabel] != "" && o.GetName() != fleetOf(o, gateway) && !CountsFor(o, gateway)
}

// FleetOf names the fleet that a live object of a Gateway is part of, as its objects are named.
func FleetOf(o metav1.Object, gateway object.Name) object.Name {
	return object.Name{Namespace: o.GetNamespace(), Name: fleetOf(o, gateway)}
}

func fleetOf(o metav1.Object, gateway object.Name) string {
	return nameIn(o.GetNamespace(), gateway, ClassOf(o))
}

// CountsFor reports whether a live object of a Gateway is one of those that count requests for it.
func CountsFor(o metav1.Object, gateway object.Name) bool {
	return o.GetName() == limitsNameIn(o.GetNamespace(), gateway, ClassOf(o))
}

// GatewayUID is the UID of the Gateway that a live object was made for; empty for one from a file.
func GatewayUID(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.UID
	}
	return types.UID(o.GetAnnotations()[gatewayUIDAnnotation])
}

// maxElsewhere leaves what is appended to the names of parts of a fleet, such as a revision, within maxName.
const maxElsewhere = 53

// nameIn is the name of a fleet's objects in a namespace. In another one than the Gateway's there are fleets of many
// tenants: the name ends with a hash that nobody finds a second Gateway for.
func nameIn(namespace string, gateway object.Name, class string) string {
	if namespace == gateway.Namespace {
		return Name(gateway, class)
	}
	text := gateway.Namespace + "-" + gateway.Name + "-" + class
	if shared, is := gateway.SharedBy(); is {
		text = "class-" + shared
	}
	text = lettered(strings.ReplaceAll(text, ".", "-"))
	sum := sha256.Sum256([]byte(gateway.String() + "/" + class))
	end := "-" + hex.EncodeToString(sum[:10])
	if len(text) > maxElsewhere-len(end) {
		text = strings.TrimRight(text[:maxElsewhere-len(end)], "-")
	}
	return text + end
}

// limitsNameIn is that of the objects that count requests.
func limitsNameIn(namespace string, gateway object.Name, class string) string {
	return partIn(namespace, gateway, class, "limits")
}

// partIn is the name of a part of a fleet. It ends with a hash in the Gateway's namespace, so that it is that of no other
// Gateway's fleet.
func partIn(namespace string, gateway object.Name, class, part string) string {
	name := nameIn(namespace, gateway, class) + "-" + part
	if namespace != gateway.Namespace {
		return name
	}
	return shortened(name, gateway.Name+"/"+class+"/"+part)
}
