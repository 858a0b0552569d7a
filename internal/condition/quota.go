package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// reasonQuotaExceeded says that a namespace would have more than it may have.
const reasonQuotaExceeded gwv1.RouteConditionReason = "QuotaExceeded"

// Overrun is what a namespace would have on a Gateway with a route that is too much.
type Overrun struct {
	Gateway, Namespace, Class        string
	Hosts, MaxHosts, Rules, MaxRules int // a limit of 0 is none
}

// RouteOverQuota is a route with which its namespace would have more on a Gateway than the
// class of that allows.
func RouteOverQuota(o Overrun) metav1.Condition {
	var much []string
	if o.MaxHosts > 0 && o.Hosts > o.MaxHosts {
		much = append(much, fmt.Sprintf("%d hosts, over the limit of %d (quotas.hosts)", o.Hosts, o.MaxHosts))
	}
	if o.MaxRules > 0 && o.Rules > o.MaxRules {
		much = append(much, fmt.Sprintf("%d matches of rules on all hosts, over the limit of %d (quotas.rules)", o.Rules, o.MaxRules))
	}
	return no(gwv1.RouteConditionAccepted, reasonQuotaExceeded, fmt.Sprintf(
		"With this route and those that were there before, namespace %s has on Gateway %s %s; remove hostnames or rules, "+
			"or ask the owner of GatewayClass %s for more in allow of its parameters; until then the route serves nothing there",
		o.Namespace, o.Gateway, strings.Join(much, " and "), o.Class))
}

// GatewayOverQuota is a Gateway with which its namespace would have more listeners on a shared fleet
// than the class of that allows.
func GatewayOverQuota(namespace, class string, listeners, limit int) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalid, fmt.Sprintf(
		"With this Gateway and those that were there before, namespace %s has %d listeners on the fleet of GatewayClass %s, over the limit of %d "+
			"(quotas.listeners); remove some, or ask the owner of the GatewayClass for more in allow of its parameters",
		namespace, listeners, class, limit))
}

// ListenerSetOverQuota is a set with which its namespace would have more listeners on a
// Gateway than the class of that allows.
func ListenerSetOverQuota(gateway, namespace, class string, listeners, limit int) metav1.Condition {
	return no(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonNotAllowed, fmt.Sprintf(
		"With this ListenerSet and those that were there before, namespace %s has %d listeners on Gateway %s, over the limit of %d "+
			"(quotas.listeners); remove some, or ask the owner of GatewayClass %s for more in allow of its parameters",
		namespace, listeners, gateway, limit, class))
}
