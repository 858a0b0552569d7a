package apply

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
)

// ownGroups are the groups of the objects that a controller consists of and keeps in its namespace.
var ownGroups = []string{corev1.GroupName, "apps", "autoscaling", "coordination.k8s.io", "networking.k8s.io", "policy", rbacv1.GroupName}

// refused says why an object can't be a blueprint's, whoever may write it; empty where it can.
func (ch *Children) refused(ref blueprint.Ref) string {
	switch group, kind := ref.Kind.Group, ref.Kind.Kind; {
	case group == corev1.GroupName && kind == "Secret":
		return "a blueprint can't make Secrets, since everybody who may read its values could read what is in them; have another controller make it, and its object be the blueprint's"
	case ref.Namespace == ch.o.Namespace && slices.Contains(ownGroups, group):
		return "a blueprint can't make objects of this kind in " + ch.o.Namespace + ", where the controller's own ones are; use another namespace"
	case group == corev1.GroupName && kind == "Namespace" && ref.Name.Name == ch.o.Namespace:
		return "a blueprint can't make the controller's own namespace; use another name"
	case group == apiextensionsv1.GroupName && kind == "CustomResourceDefinition" &&
		(strings.HasSuffix(ref.Name.Name, ".gatehouse.dev") || strings.HasSuffix(ref.Name.Name, "."+gwv1.GroupName)):
		return "a blueprint can't make the definitions that the controller itself needs"
	default:
		return ""
	}
}

// withoutValues takes from a text the values of an object, which may be nobody's business: the API server's
// errors quote them. What an object is known by, and what is too short for a secret, stays.
func withoutValues(text string, object map[string]any) string {
	var values []string
	var collect func(any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, each := range v {
				collect(each)
			}
		case []any:
			for _, each := range v {
				collect(each)
			}
		case string:
			if len(v) >= 6 {
				values = append(values, v, strings.Trim(strconv.Quote(v), `"`))
			}
		}
	}
	for name, v := range object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			collect(v)
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		collect(metadata["annotations"])
		collect(metadata["labels"])
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, v := range values {
		text = strings.ReplaceAll(text, v, "…")
	}
	return text
}
