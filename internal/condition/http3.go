package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListenerHTTP3BindFailed says that a proxy could not bind the UDP port of a
// listener with HTTP/3, and what to do.
func ListenerHTTP3BindFailed(failure BindFailure, port int, envoy string) metav1.Condition {
	why := fmt.Sprintf("UDP port %d can't be bound", port)
	switch failure {
	case BindDenied:
		why = fmt.Sprintf("UDP port %d needs privileges", port)
	case BindInUse:
		why = fmt.Sprintf("UDP port %d is used by another process (\"ss -lunp 'sport = :%d'\" names it)", port, port)
	case BindNoAddress:
		why = "This host does not have the address"
	case BindOther:
	}
	return ListenerPortUnavailable(why + ", so there is no HTTP/3, only what goes over TCP: " +
		"free the port, choose another, or turn HTTP/3 off with gatehouse.dev/http3: \"false\" in tls.options" + envoySays + envoy)
}
