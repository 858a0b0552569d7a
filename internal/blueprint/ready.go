package blueprint

import (
	"cmp"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// notReady says by the conventions of Kubernetes' statuses why an object is not ready; empty where it
// is.
func notReady(o *unstructured.Unstructured) string {
	result, err := kstatus.Compute(o)
	switch {
	case err != nil:
		return err.Error()
	case result.Status != kstatus.CurrentStatus:
		return cmp.Or(result.Message, string(result.Status))
	}
	// Of those that serve, proxies have to have what they say. The conventions know nothing of it.
	if of := o.GroupVersionKind(); of.Group == gwv1.GroupName && (of.Kind == "Gateway" || of.Kind == "ListenerSet") {
		return notProgrammed(o)
	}
	return ""
}

// notSaidReady says that nobody has said of an object that it is ready; empty where somebody has, and for kinds of
// Kubernetes itself, which the conventions know. To those an object of another kind is ready as long as nobody has said
// anything of it: a Certificate that was made a moment ago would take the place of one that works.
func notSaidReady(o *unstructured.Unstructured) string {
	of := o.GroupVersionKind()
	if !strings.Contains(of.Group, ".") || of.Group == gwv1.GroupName && (of.Kind == "Gateway" || of.Kind == "ListenerSet") {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range conditions {
		if c, _ := each.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
			return ""
		}
	}
	return "has no condition Ready=True yet; give its resource a readyWhen if it never has"
}

// notProgrammed says why the newest version of a Gateway or ListenerSet is not in force; empty where it
// is.
func notProgrammed(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range conditions {
		c, _ := each.(map[string]any)
		if c["type"] != string(gwv1.GatewayConditionProgrammed) {
			continue
		}
		if of, _ := c["observedGeneration"].(int64); of < o.GetGeneration() {
			break
		}
		if c["status"] == "True" {
			return ""
		}
		message, _ := c["message"].(string)
		return cmp.Or(message, "is not programmed")
	}
	return "is not programmed yet"
}
