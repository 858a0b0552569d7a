package infra

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// These labels are on all objects of a fleet, its pods too.
const (
	GatewayLabel   = gwv1.GatewayNameLabelKey
	ClassLabel     = "gateway.networking.k8s.io/gateway-class-name"
	nameLabel      = "app.kubernetes.io/name"
	InstanceLabel  = "app.kubernetes.io/instance"
	ManagedByLabel = "app.kubernetes.io/managed-by"
	componentLabel = "app.kubernetes.io/component"
)

// ProxySelector selects the pods of all fleets.
const (
	ProxySelector = nameLabel + "=" + proxyName
	proxyName     = "gatehouse-proxy"
)

// These are on the objects that blueprints make, and on what lists them (ApplySets, KEP-3659).
// Such an object is of no fleet, whatever owns it.
const (
	PartOfLabel = "applyset.kubernetes.io/part-of"
	SetIDLabel  = "applyset.kubernetes.io/id"
)

// ResourceLabel is on objects of blueprints too: the id of the resource that they are made of.
const ResourceLabel = "gatehouse.dev/blueprint-resource"

// InventoryName is the name of the ConfigMap, in a controller's namespace, that lists the objects that a
// Gateway has by its blueprint. Its ApplySet has the id SetID.
func InventoryName(controllerName string, gateway object.Name) string {
	sum := sha256.Sum256([]byte(controllerName + " " + gateway.String()))
	return "gatehouse-blueprint-" + hex.EncodeToString(sum[:10])
}

// SetID is the value of PartOfLabel on the objects that an inventory lists.
func SetID(inventory, namespace string) string {
	id := sha256.Sum256([]byte(inventory + "." + namespace + ".ConfigMap."))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(id[:]) + "-v1"
}

// OfBlueprint reports whether an object is one that a blueprint has made.
func OfBlueprint(o metav1.Object) bool {
	return o.GetLabels()[PartOfLabel] != "" && o.GetAnnotations()[GatewayAnnotation] != ""
}

// ManagedBy is the value of ManagedByLabel, and the field manager of what is
// applied.
const ManagedBy = "gatehouse"

// These annotations are on the objects of a fleet.
const (
	GatewayAnnotation    = "gatehouse.dev/gateway"    // ns/name; the label's value may be a hash
	classAnnotation      = "gatehouse.dev/class"      // likewise
	ControllerAnnotation = "gatehouse.dev/controller" // whose fleet it is; several controllers may share a cluster
	AppliedAnnotation    = "gatehouse.dev/applied"    // hash of what was applied last
)

// maxName is the longest name of a Service and the longest value of a label.
const maxName = 63

// Name returns the name of a Gateway's objects where they are in the Gateway's namespace; Places.Name knows the others:
// <gateway>-<class>, as GEP-1762 has it. It is the name of a Service too, whose
// rules are the strictest: no more than 63 letters, digits and dashes, a letter
// first. A hash ends the name where those rules cost it something, and where the
// class has a dash, or where its Gateways share the fleet: Gateway a-b of class c must not share the name of Gateway a of
// class b-c.
func Name(gateway object.Name, class string) string {
	name := gateway.Name + "-" + class
	if shared, is := gateway.SharedBy(); is {
		name = "class-" + shared
		return shortened(strings.ReplaceAll(name, ".", "-"), gateway.Name)
	}
	plain := lettered(strings.ReplaceAll(name, ".", "-"))
	if plain == name && len(name) <= maxName && !strings.Contains(class, "-") {
		return name
	}
	return shortened(plain, gateway.Name+"/"+class)
}

// lettered is a name that begins with a letter.
func lettered(name string) string {
	if first := name[0]; first < 'a' || first > 'z' {
		return "gw-" + name
	}
	return name
}

// shortened ends a text with the hash of what it stands for, and cuts it where it
// is too long for that.
func shortened(text, whole string) string {
	sum := sha256.Sum256([]byte(whole))
	end := "-" + hex.EncodeToString(sum[:4])
	if len(text) > maxName-len(end) {
		text = strings.TrimRight(text[:maxName-len(end)], "-._")
	}
	return text + end
}

// LabelValue is a name as the value of a label.
func LabelValue(name string) string {
	if len(name) <= maxName {
		return name
	}
	return shortened(name, name)
}

// NamespaceLabel is on the objects of a fleet in another namespace than the Gateway's: which that is.
const NamespaceLabel = "gatehouse.dev/gateway-namespace"

// Labels are those of every object of a fleet in the Gateway's namespace.
func Labels(gateway object.Name, class string) map[string]string {
	return map[string]string{
		GatewayLabel:   LabelValue(gateway.Name),
		ClassLabel:     LabelValue(class),
		nameLabel:      proxyName,
		InstanceLabel:  Name(gateway, class),
		ManagedByLabel: ManagedBy,
		componentLabel: "proxy",
	}
}
