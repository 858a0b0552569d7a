package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// backendKinds are the kinds of objects that routes can be sent to. A further kind is a
// row here and a file of its own; whoever comes after knows a backend by its key.
var backendKinds = map[object.Kind]func(r *resolver, ref reference) BackendRef{
	kind.Service:       (*resolver).service,
	kind.ServiceImport: (*resolver).serviceImport,
	kind.XBackend:      (*resolver).xBackend,
	kind.InferencePool: (*resolver).inferencePool,
}

// reference is what a route refers to, and what it wants there.
type reference struct {
	object object.Key
	port   *int32 // nil where the reference has none
	use    ir.Use
	field  func() string // where the reference stands
}

// backend follows a reference to a backend.
func (r *resolver) backend(use ir.Use, ref *gwv1.BackendObjectReference, field func() string) BackendRef {
	group, name := valueOr(ref.Group, ""), valueOr(ref.Kind, "Service")
	to := object.Key{
		Kind: object.KindOf(string(group), string(name)),
		Name: object.Name{
			Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(r.route.Namespace))),
			Name:      string(ref.Name),
		},
	}
	var out BackendRef
	if resolve, ok := backendKinds[to.Kind]; ok {
		out = resolve(r, reference{to, ref.Port, use, field})
	} else {
		out = problem(condition.BackendKind(field(), kindText(group, name), string(ref.Name)))
	}
	if out.Problem != nil {
		r.problems = append(r.problems, *out.Problem)
		if out.Problem.Reason == condition.ReasonWaiting {
			r.waits = append(r.waits, to)
		}
	}
	return out
}

func problem(c metav1.Condition) BackendRef { return BackendRef{Problem: &c} }
