package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// reportCounting says in a state whether requests for a Gateway are counted.
func (f *Fleets) reportCounting(ctx context.Context, c cache.Cache, g *infra.Gateway, state *infra.State) error {
	why, err := f.counting(ctx, c, g)
	state.Counting, state.NotCounting = why == "" && err == nil, why
	return err
}

// counting says why nobody counts requests for a Gateway; empty where somebody does.
func (f *Fleets) counting(ctx context.Context, c cache.Cache, g *infra.Gateway) (string, error) {
	name := f.options.Places.LimitsName(g.Name, g.Class)
	want := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
	}
	live, err := cached(ctx, c, want)
	if err != nil {
		return "", err
	}
	if d, ok := live.(*appsv1.Deployment); ok {
		if d.Status.AvailableReplicas > 0 {
			return "", nil
		}
		if why := f.waiting(g.Name, d); why != "" {
			return why, nil
		}
	}
	why := fmt.Sprintf("Deployment %s/%s has no pod that is ready", want.Namespace, want.Name)
	if s := g.Settings; s != nil && s.Limits != nil && s.Limits.Redis != nil {
		why += fmt.Sprintf("; if Redis at %s does not answer, the log of its pods says why", s.Limits.Redis.Host)
	}
	return why, nil
}
