package foreign

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Kind is a kind of policies of another implementation. Its objects are in namespaces.
type Kind struct {
	object.Kind
	Plural string // as paths of the API have it
	Of     string // the implementation, as people call it
	// Ours is the kind of Gatehouse that does the like; the zero value if there is none.
	Ours object.Kind
}

// Kinds are those that are known, by group and name.
var Kinds = slices.Concat(
	kinds("Envoy Gateway", "gateway.envoyproxy.io",
		row{"BackendTrafficPolicy", "backendtrafficpolicies", kind.TrafficPolicy},
		row{"ClientTrafficPolicy", "clienttrafficpolicies", kind.TrafficPolicy},
		row{"EnvoyExtensionPolicy", "envoyextensionpolicies", object.Kind{}},
		row{"EnvoyPatchPolicy", "envoypatchpolicies", object.Kind{}},
		row{"SecurityPolicy", "securitypolicies", kind.AuthPolicy}),
	kinds("Istio", "extensions.istio.io",
		row{"WasmPlugin", "wasmplugins", object.Kind{}}),
	kinds("kgateway", "gateway.kgateway.dev",
		row{"BackendConfigPolicy", "backendconfigpolicies", kind.TrafficPolicy},
		row{"HTTPListenerPolicy", "httplistenerpolicies", kind.TrafficPolicy},
		row{"ListenerPolicy", "listenerpolicies", kind.TrafficPolicy},
		row{"TrafficPolicy", "trafficpolicies", kind.TrafficPolicy}),
	kinds("NGINX Gateway Fabric", "gateway.nginx.org",
		row{"ClientSettingsPolicy", "clientsettingspolicies", kind.TrafficPolicy},
		row{"ObservabilityPolicy", "observabilitypolicies", object.Kind{}},
		row{"ProxySettingsPolicy", "proxysettingspolicies", kind.TrafficPolicy},
		row{"RateLimitPolicy", "ratelimitpolicies", kind.RateLimitPolicy},
		row{"SnippetsPolicy", "snippetspolicies", object.Kind{}},
		row{"UpstreamSettingsPolicy", "upstreamsettingspolicies", kind.TrafficPolicy}),
	kinds("Kuadrant", "kuadrant.io",
		row{"AuthPolicy", "authpolicies", kind.AuthPolicy},
		row{"RateLimitPolicy", "ratelimitpolicies", kind.RateLimitPolicy},
		row{"TokenRateLimitPolicy", "tokenratelimitpolicies", kind.RateLimitPolicy}),
	kinds("Istio", "security.istio.io",
		row{"AuthorizationPolicy", "authorizationpolicies", kind.AuthPolicy},
		row{"RequestAuthentication", "requestauthentications", kind.AuthPolicy}),
)

// row is a kind of a group.
type row struct {
	name, plural string
	ours         object.Kind
}

func kinds(of, group string, rows ...row) []Kind {
	out := make([]Kind, len(rows))
	for i, r := range rows {
		out[i] = Kind{Kind: object.KindOf(group, r.name), Plural: r.plural, Of: of, Ours: r.ours}
	}
	return out
}

// KindOf returns the row of a kind; nil for one that is not known.
func KindOf(of object.Kind) *Kind {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Kind == of })
	if i < 0 {
		return nil
	}
	return &Kinds[i]
}

// Policy is a policy of another implementation.
type Policy struct {
	Key        object.Key
	APIVersion string
	UID        types.UID    // of an object in a cluster
	Line       int          // of its file, 1-based; 0 in a cluster
	Targets    []object.Key // in the order of the text
}

// Equal reports whether two policies say the same.
func (p Policy) Equal(o Policy) bool {
	return p.Key == o.Key && p.APIVersion == o.APIVersion && p.UID == o.UID && p.Line == o.Line && slices.Equal(p.Targets, o.Targets)
}

// PolicyOf reads an object. It is not ok for one that is no policy of a kind that is known, or has no
// target.
func PolicyOf(content map[string]any) (p Policy, ok bool) {
	o := unstructured.Unstructured{Object: content}
	gvk := o.GroupVersionKind()
	p = Policy{
		Key: object.Key{
			Kind: object.KindOf(gvk.Group, gvk.Kind),
			Name: object.Name{Namespace: cmp.Or(o.GetNamespace(), metav1.NamespaceDefault), Name: o.GetName()},
		},
		APIVersion: o.GetAPIVersion(), UID: o.GetUID(),
	}
	if p.Key.Name.Name == "" || KindOf(p.Key.Kind) == nil {
		return Policy{}, false
	}
	spec, _ := content["spec"].(map[string]any)
	refs, _ := spec["targetRefs"].([]any)
	for _, ref := range append(slices.Clip(refs), spec["targetRef"]) {
		if t, ok := target(ref, p.Key.Namespace); ok && !slices.Contains(p.Targets, t) {
			p.Targets = append(p.Targets, t)
		}
	}
	return p, len(p.Targets) > 0
}

// target reads a reference.
func target(ref any, namespace string) (object.Key, bool) {
	fields, _ := ref.(map[string]any)
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	if text("namespace") != "" {
		namespace = text("namespace")
	}
	of := object.KindOf(text("group"), text("kind"))
	if d := kind.All.Of(of); d != nil && d.Scope == kind.ClusterScoped {
		namespace = ""
	}
	return object.Key{Kind: of, Name: object.Name{Namespace: namespace, Name: text("name")}}, text("kind") != "" && text("name") != ""
}
