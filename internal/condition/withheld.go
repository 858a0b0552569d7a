package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Unprocessed begins the lines of the log that say what could not be computed.
const Unprocessed = "a value could not be processed"

// reasonWithheld is that of a Gateway that waits for such a value, and of its Event.
const reasonWithheld = "Withheld"

// withheld is a part of all messages about that.
const withheld = "a defect of Gatehouse keeps a part of the configuration from being computed, and that part may be a guard of this Gateway"

// NoteWithheld says that proxies of a Gateway are told nothing new. It names no object: the one
// that can't be processed may be of another team.
func NoteWithheld() string {
	return withheld + "; until it can be, its proxies go on with what they have, get only new endpoints, and serve nothing if they have nothing" +
		". The lines \"" + Unprocessed + "\" of Gatehouse's log name the object: undo its last change, and report them"
}

// GatewayWithheld says that proxies are not told the newest configuration of a Gateway.
func GatewayWithheld() metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, reasonWithheld, "The newest configuration is not in force: "+NoteWithheld())
}
