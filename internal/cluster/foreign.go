package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// foreignPolicies makes Events at the policies of other implementations that target what is served here: there is no
// place for it in their status, which is their implementation's.
type foreignPolicies struct {
	tableReader[string, []pipeline.WithoutEffect]
}

func newForeignPolicies(p *pipeline.Pipeline, recorder events.EventRecorder) *foreignPolicies {
	told := map[string]string{} // by where the policy stands
	return &foreignPolicies{tableReader[string, []pipeline.WithoutEffect]{
		table: p.WithoutEffect,
		onSet: func(at string, list []pipeline.WithoutEffect) {
			for _, w := range list {
				if w.File != "" || told[at] == w.Message {
					continue
				}
				told[at] = w.Message
				key := w.Policy.Key
				recorder.Eventf(&corev1.ObjectReference{
					APIVersion: w.Policy.APIVersion, Kind: key.Kind.Name(), Namespace: key.Namespace, Name: key.Name.Name, UID: w.Policy.UID,
				}, nil, corev1.EventTypeWarning, "NoEffect", "Read", "%s", w.Message)
			}
		},
		onGone: func(at string) { delete(told, at) },
	}}
}

// Nothing is removed for a policy, and nothing of ours is in a cluster for one.
func (*foreignPolicies) complete()          {}
func (*foreignPolicies) changed(object.Key) {}

func (*foreignPolicies) run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
