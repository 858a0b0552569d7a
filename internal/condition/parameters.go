package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// goesOn says what happens to proxies whose parameters can't be used.
const goesOn = "proxies that run already go on as they are, and no new ones are started"

func classParameters(format string, args ...any) metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusAccepted, gwv1.GatewayClassReasonInvalidParameters,
		fmt.Sprintf(format, args...)+"; until then "+goesOn)
}

// ClassParametersWithoutNamespace says that parametersRef lacks the namespace of
// its object.
func ClassParametersWithoutNamespace(name string) metav1.Condition {
	return classParameters("spec.parametersRef names GatewayParameters %q without its namespace; add it", name)
}

// ClassParametersMissing says that parametersRef names what doesn't exist.
func ClassParametersMissing(name string) metav1.Condition {
	return classParameters("spec.parametersRef names GatewayParameters %s, which doesn't exist; create it, or remove parametersRef", name)
}

// ClassBlueprintMissing says that a class's parameters name a blueprint that doesn't exist.
func ClassBlueprintMissing(name, blueprint string) metav1.Condition {
	return classParameters("spec.blueprintRef of GatewayParameters %s names GatewayBlueprint %s, which doesn't exist; create it, or remove blueprintRef", name, blueprint)
}

// ClassParametersNotRead says that parametersRef names an object of a namespace that
// this controller doesn't read.
func ClassParametersNotRead(name, namespace string) metav1.Condition {
	return classParameters("spec.parametersRef names GatewayParameters %s, but %s, or move the parameters", name, notRead(namespace))
}

// ClassParametersInvalid says what is wrong with a class's parameters.
func ClassParametersInvalid(name string, problems []string) metav1.Condition {
	return classParameters("GatewayParameters %s can't be used: %s; mend it", name, join(problems, "; "))
}

func gatewayParameters(format string, args ...any) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalidParameters,
		fmt.Sprintf(format, args...)+"; until then "+goesOn)
}

// GatewayParametersMissing says that infrastructure.parametersRef names what doesn't
// exist.
func GatewayParametersMissing(parameters Missing) metav1.Condition {
	if parameters.At != "" || parameters.Near != "" {
		return no(gwv1.GatewayConditionAccepted, parameters.reason(string(gwv1.GatewayReasonInvalidParameters)),
			parameters.text("spec.infrastructure.parametersRef")+"; until then "+goesOn)
	}
	name := parameters.Namespace + "/" + parameters.Name
	return gatewayParameters("spec.infrastructure.parametersRef names GatewayParameters %s, which doesn't exist; create it, or remove parametersRef", name)
}

// GatewayParametersInvalid says what is wrong with a Gateway's parameters, or with
// what they and those of its class make together.
func GatewayParametersInvalid(name string, problems []string) metav1.Condition {
	return gatewayParameters("GatewayParameters %s can't be used: %s; mend it", name, join(problems, "; "))
}

// GatewayParametersNotAllowed says which fields a Gateway's parameters set although its
// class doesn't allow it.
func GatewayParametersNotAllowed(name, class, allowed string, fields []string) metav1.Condition {
	return gatewayParameters("GatewayParameters %s sets %s, which GatewayClass %s doesn't let its Gateways set (allow.parameters of its parameters is %s); "+
		"remove it, or ask for it in the parameters of the class", name, join(fields, ", "), class, allowed)
}

// GatewayParametersNotTrusted says which fields of parameters could write files of whoever
// runs this process, who hasn't said that the manifests may do so.
func GatewayParametersNotTrusted(name string, fields []string) metav1.Condition {
	return gatewayParameters("GatewayParameters %s sets %s, with which it can write any file that this process can; "+
		"remove it, or start Gatehouse with --allow-unsafe-parameters if you trust whoever writes the manifests", name, join(fields, ", "))
}

// NoteParametersWithoutEffect says which settings are for Kubernetes only.
func NoteParametersWithoutEffect(fields []string) string {
	return fmt.Sprintf("the parameters set %s, which has no effect outside of Kubernetes", join(fields, ", "))
}

// NotePatchesBarred says that a class doesn't allow the patches of its Gateways.
func NotePatchesBarred(parameters, class string) string {
	return fmt.Sprintf("the patches of GatewayParameters %s have no effect, since GatewayClass %s has overrides, which patches could undo; "+
		"remove them, or ask for them in the parameters of the class", parameters, class)
}
