package status

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// listenerInput is what the statuses of an object's listeners follow from.
type listenerInput struct {
	object         metav1.Object     // that defines them
	reader         condition.Reader  // whom the conditions are for
	refused        string            // why the Gateway is not accepted; empty where it is
	unusable       *metav1.Condition // the Gateway's
	attachedRoutes func(topology.ListenerKey) int32
	filters        func(*topology.Listener) *topology.ListenerFilters
	proxy          ProxyState
	noProxy        string // why no proxy is connected; empty where that is not known
	now            time.Time
}

func (in *listenerInput) status(l *topology.Listener, conditions []metav1.Condition) gwv1.ListenerStatus {
	kinds := l.Kinds
	if kinds == nil {
		kinds = []gwv1.RouteGroupKind{} // no kind, which is something else than not told
	}
	return gwv1.ListenerStatus{
		Name:           gwv1.SectionName(l.Key.Name()),
		SupportedKinds: kinds,
		AttachedRoutes: in.attachedRoutes(l.Key),
		Conditions:     observed(in.object, conditions...),
	}
}

// conditions gives a listener's conditions: the node's, corrected by what only the
// proxy and the clock know, and Programmed.
func (in *listenerInput) conditions(l *topology.Listener) []metav1.Condition {
	conditions := slices.Clone(l.Conditions)
	switch {
	case in.refused != "":
		return append(conditions, condition.ListenerInvalid(in.refused))
	case !l.Serves:
		return append(conditions, condition.ListenerNotProgrammed(in.cause(l)))
	}
	if len(l.Filters) > 0 {
		filters := in.filters(l)
		if len(filters.Problems) > 0 {
			conditions = replaced(conditions, unresolved(conditions, filters.Problems))
		}
		if _, bad := translate.Prerouting(filters); bad != nil {
			return append(replaced(conditions, *bad), condition.ListenerNotProgrammed(*bad))
		}
	}
	conditions = in.dated(l, conditions)
	name := translate.ListenerName(l)
	if r, ok := in.proxy.Rejected[Ref{RefListener, name}]; ok {
		if failure, ok := bindFailure(r.Message); ok {
			unavailable := condition.ListenerBindFailed(failure, int(l.BindPort), r.Message)
			return append(replaced(conditions, unavailable), condition.ListenerNotProgrammed(unavailable))
		}
		return append(conditions, condition.ListenerRefused(in.words(l, r), r.KeepsOld))
	}
	for _, secret := range l.Certificates {
		for _, ref := range certificateRefs(l, secret) {
			if r, ok := in.proxy.Rejected[ref]; ok {
				return append(conditions, condition.ListenerCertificateRefused(secret.String(), r.Message, r.KeepsOld))
			}
		}
	}
	if v := l.Clients; v != nil {
		if r, ok := in.proxy.Rejected[SecretRef(ir.Authorities(v.Authorities...))]; ok {
			return append(conditions, condition.ListenerAuthoritiesRefused(in.authorityNames(l), in.words(l, r), r.KeepsOld))
		}
	}
	if in.proxy.Connected && in.proxy.Listeners[name] {
		if corrected, ok := in.http3(l, conditions); ok {
			return corrected
		}
		return append(conditions, condition.ListenerProgrammed())
	}
	return append(conditions, condition.ListenerPending(in.waitsFor()))
}

// unresolved is ResolvedRefs with further problems.
func unresolved(conditions, more []metav1.Condition) metav1.Condition {
	if c, ok := condition.Find(conditions, string(gwv1.ListenerConditionResolvedRefs)); ok && c.Status == metav1.ConditionFalse {
		more = append([]metav1.Condition{c}, more...)
	}
	return condition.ListenerNotResolved(more)
}

// certificateRefs are what proxies call a certificate of a listener: by its Secret or, where they ask for it on
// demand, by the host.
func certificateRefs(l *topology.Listener, secret object.Name) []Ref {
	return []Ref{SecretRef(ir.Certificate(secret)), SecretRef(ir.ServerName(l.Hostname))}
}

// oldVersion says that not the newest version of a listener is in force, but an earlier one.
type oldVersion bool

// oldInForce reports whether the proxy refuses the newest version of a listener, or what it
// needs, and goes on with the last one that it has accepted. A port that can't be bound is
// another matter.
func (in *listenerInput) oldInForce(l *topology.Listener) oldVersion {
	refs := []Ref{{RefListener, translate.ListenerName(l)}}
	for _, secret := range l.Certificates {
		refs = append(refs, certificateRefs(l, secret)...)
	}
	if v := l.Clients; v != nil {
		refs = append(refs, SecretRef(ir.Authorities(v.Authorities...)))
	}
	for _, ref := range refs {
		if r, ok := in.proxy.Rejected[ref]; ok {
			_, unbound := bindFailure(r.Message)
			return oldVersion(r.KeepsOld && !unbound)
		}
	}
	return false
}

// words are what a proxy says of what the listener shares with others of its Gateway.
func (in *listenerInput) words(l *topology.Listener, r Rejection) string {
	return in.reader.Words(r.Message, l.Key.Gateway().Namespace)
}

// authorityNames names the objects that the Gateway of a listener refers to.
func (in *listenerInput) authorityNames(l *topology.Listener) []string {
	if !in.reader.Sees(l.Key.Gateway().Namespace) {
		return []string{"caCertificateRefs in the Gateway's spec.tls.frontend"}
	}
	names := make([]string, len(l.Clients.Authorities))
	for i, ref := range l.Clients.Authorities {
		names[i] = ref.String()
	}
	return names
}

// clockGrain is by how much the time that statuses are computed with may lag. A
// certificate that was issued a moment ago is not one from the future.
const clockGrain = time.Minute

// dated adds to ResolvedRefs the certificates that are out of their time. They are
// served all the same: it is the clients who judge them, by their own clocks.
func (in *listenerInput) dated(l *topology.Listener, conditions []metav1.Condition) []metav1.Condition {
	if in.now.IsZero() {
		return conditions
	}
	var problems []metav1.Condition
	var notes []string
	for i, v := range l.Validity {
		switch secret := l.Certificates[i].String(); {
		case in.now.After(v.NotAfter):
			problems = append(problems, condition.ListenerCertificateExpired(secret, v.NotAfter))
		case in.now.Add(clockGrain).Before(v.NotBefore):
			problems = append(problems, condition.ListenerCertificateNotYetValid(secret, v.NotBefore))
		case in.now.After(renewal(v)):
			notes = append(notes, condition.NoteCertificateExpires(secret, v.NotAfter))
		}
	}
	resolved, ok := condition.Find(conditions, string(gwv1.ListenerConditionResolvedRefs))
	switch unresolved := ok && resolved.Status == metav1.ConditionFalse; {
	case len(problems) > 0 && unresolved:
		return replaced(conditions, condition.ListenerNotResolved(slices.Insert(problems, 0, resolved)))
	case len(problems) > 0:
		return replaced(conditions, condition.ListenerNotResolved(problems))
	case len(notes) > 0 && ok:
		return replaced(conditions, condition.Noted(resolved, notes...))
	default:
		return conditions
	}
}

// renewal is when a certificate that nobody has renewed is worth a word: two weeks
// before its end, or in the last sixth of a short life. Those who renew certificates
// do it when a third is left.
func renewal(v topology.Validity) time.Time {
	const early = 14 * 24 * time.Hour
	return v.NotAfter.Add(-min(early, v.NotAfter.Sub(v.NotBefore)/6))
}

func (in *listenerInput) waitsFor() string {
	if in.proxy.Waits != "" {
		return in.proxy.Waits
	}
	if in.proxy.Connected {
		return "Waiting for the proxy to acknowledge the configuration"
	}
	if in.noProxy != "" {
		return "Waiting for a proxy to connect: " + in.noProxy
	}
	return "Waiting for a proxy to connect"
}

// cause is the condition for which a listener doesn't serve.
func (in *listenerInput) cause(l *topology.Listener) metav1.Condition {
	for _, kind := range []gwv1.ListenerConditionType{gwv1.ListenerConditionAccepted, gwv1.ListenerConditionResolvedRefs} {
		if c, ok := condition.Find(l.Conditions, string(kind)); ok && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	if in.unusable != nil {
		return *in.unusable
	}
	return metav1.Condition{Message: "The listener is not served"}
}

// replaced gives the list with c in the place of the condition of its type.
func replaced(list []metav1.Condition, c metav1.Condition) []metav1.Condition {
	i := slices.IndexFunc(list, func(o metav1.Condition) bool { return o.Type == c.Type })
	if i < 0 {
		return append(list, c)
	}
	list[i] = c
	return list
}

// bindFailure reads Envoy's message about a listener: whether it is about binding
// its port, and why that failed. The reasons are strerror's.
func bindFailure(message string) (condition.BindFailure, bool) {
	for _, f := range []struct {
		text string
		is   condition.BindFailure
	}{
		{"Permission denied", condition.BindDenied},
		{"Address already in use", condition.BindInUse},
		{"Cannot assign requested address", condition.BindNoAddress},
	} {
		if strings.Contains(message, f.text) {
			return f.is, true
		}
	}
	return condition.BindOther, strings.Contains(message, "cannot bind") || strings.Contains(message, "cannot listen")
}
