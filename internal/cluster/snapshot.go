package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Snapshot is a cluster's objects at one time, and what they become.
type Snapshot struct {
	*pipeline.Pipeline
	controller string
	objects    map[object.Key]source.Object
	// problems are with the controllers themselves, and concern all namespaces.
	problems []source.Problem
}

// TakeSnapshot reads a cluster as the controller of a name sees it, without Secrets
// and ConfigMaps.
func TakeSnapshot(ctx context.Context, r *kube.Reader, controller string) (*Snapshot, error) {
	channel, err := r.Channel(ctx)
	if err != nil {
		return nil, err
	}
	batch, err := r.Load(ctx, channel)
	if err != nil {
		return nil, err
	}
	cfg := configuration.Default()
	cfg.ControllerName = controller
	options := pipelineOptions(cfg, channel)
	options.NoProxies = true
	s := &Snapshot{
		Pipeline:   pipeline.New(options),
		controller: controller,
		objects:    make(map[object.Key]source.Object, len(batch.Set)),
		problems:   installations(ctx, r, controller, time.Now()),
	}
	for _, o := range batch.Set {
		s.objects[source.KeyOf(o)] = o
	}
	return s, s.add(batch)
}

// Complete reads the Secrets and ConfigMaps that the objects refer to.
func (s *Snapshot) Complete(ctx context.Context, r *kube.Reader) error {
	secrets, configMaps := slices.Collect(s.Inputs.Secrets.Asked), slices.Collect(s.Inputs.ConfigMaps.Asked)
	slices.SortFunc(secrets, object.Name.Compare)
	slices.SortFunc(configMaps, object.Name.Compare)
	return s.add(r.Contents(ctx, secrets, configMaps))
}

func (s *Snapshot) add(b source.Batch) error {
	if c := s.Apply(b); len(c.Failures) > 0 {
		return fmt.Errorf("a value could not be processed, please report this: %w", c.Failures[0])
	}
	return nil
}

// Live returns the objects with the statuses that they have in the cluster, those of a
// namespace and of none; all if it is empty.
func (s *Snapshot) Live(namespace string) view.View {
	v := view.Live(s.Pipeline, s.objects, s.controller, namespace)
	v.Problems = append(slices.Clone(s.problems), v.Problems...)
	return v
}
