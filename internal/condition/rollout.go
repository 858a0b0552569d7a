package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayRolledOut is the type of a Gateway's condition with the rollout strategy BlueGreen: it says
// whether the proxies that serve are of the newest revision. Type and reasons are those of Kong's DataPlane, which
// users of this strategy know.
const GatewayRolledOut = "RolledOut"

// The reasons of GatewayRolledOut.
const (
	ReasonRolloutProgressing = "Progressing"
	ReasonAwaitingPromotion  = "AwaitingPromotion"
	ReasonComparing          = "Comparing"
	ReasonWorse              = "Worse"
	ReasonPromoted           = "Promoted"
)

// Revision is a pod template of a Gateway's proxies, and the Deployment that runs it.
type Revision struct{ Name, Deployment string }

// RolloutProgressing says that not all proxies of a revision are ready. Live is the Deployment that serves until they
// are promoted, empty where none does. Why says what keeps one of them, where that is known.
func RolloutProgressing(r Revision, live string, ready, wanted int32, why string) metav1.Condition {
	text := fmt.Sprintf("%d of %d proxies of revision %s are ready, in Deployment %s", ready, wanted, r.Name, r.Deployment)
	if live != "" {
		text += "; those of " + live + " serve"
	}
	if why != "" {
		text += "; " + why
	}
	return no(GatewayRolledOut, ReasonRolloutProgressing, text)
}

// RolloutAwaitsPromotion says that a revision can be promoted, and how. Refused is what its proxies refuse of the
// configuration, and those that serve don't.
func RolloutAwaitsPromotion(r Revision, live, preview, annotation, refused string) metav1.Condition {
	text := fmt.Sprintf(
		"All proxies of revision %s are ready, behind Service %s; to lead clients to them, set the annotation %s: %s of the Gateway; until then those of %s serve",
		r.Name, preview, annotation, r.Name, live)
	if refused != "" {
		text += "; they refuse what those take, " + refused
	}
	return no(GatewayRolledOut, ReasonAwaitingPromotion, text)
}

// RolloutComparing says that a proxy of a revision gets requests, and what keeps its comparison from its end.
func RolloutComparing(r Revision, live, why string) metav1.Condition {
	text := fmt.Sprintf("A proxy of revision %s, in Deployment %s, gets requests beside those of %s, and is compared with them", r.Name, r.Deployment, live)
	if why != "" {
		text += "; " + why
	}
	return no(GatewayRolledOut, ReasonComparing, text)
}

// RolloutWorse says that a revision is not promoted, and by what figures.
func RolloutWorse(r Revision, live, figures, annotation string) metav1.Condition {
	return no(GatewayRolledOut, ReasonWorse, fmt.Sprintf(
		"The proxy of revision %s was worse than those of %s, which serve alone again: %s; change the parameters, or promote it nevertheless by the annotation %s: %s",
		r.Name, live, figures, annotation, r.Name))
}

// RolloutPromoted says that the proxies of the newest revision serve, and what a comparison before that has come to.
func RolloutPromoted(r Revision, figures string) metav1.Condition {
	text := fmt.Sprintf("Clients are led to the proxies of revision %s, in Deployment %s", r.Name, r.Deployment)
	if figures != "" {
		text += "; it was compared before: " + figures
	}
	return yes(GatewayRolledOut, ReasonPromoted, text)
}

// NoteOtherPromotion says that somebody wants to promote what is not there.
func NoteOtherPromotion(annotation, revision string) string {
	return fmt.Sprintf("annotation %s names revision %s, which is not the newest one", annotation, revision)
}
