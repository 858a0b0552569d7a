package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// http3 corrects and completes the conditions of a listener whose TCP side is in
// force by what has become of the UDP side. It reports whether there was something
// to say.
func (in *listenerInput) http3(l *topology.Listener, conditions []metav1.Condition) ([]metav1.Condition, bool) {
	name := translate.QUICName(l)
	if name == "" {
		return nil, false
	}
	if r, ok := in.proxy.Rejected[Ref{RefListener, name}]; ok {
		if failure, ok := bindFailure(r.Message); ok {
			unavailable := condition.ListenerHTTP3BindFailed(failure, int(l.BindPort), r.Message)
			return append(replaced(conditions, unavailable), condition.ListenerNotProgrammed(unavailable)), true
		}
		return append(conditions, condition.ListenerRefused(in.words(l, r), r.KeepsOld)), true
	}
	if !in.proxy.Listeners[name] {
		return append(conditions, condition.ListenerPending(in.waitsFor())), true
	}
	return nil, false
}
