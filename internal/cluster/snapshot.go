package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
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
// and ConfigMaps. In the namespace the platform says values for whole classes.
func TakeSnapshot(ctx context.Context, r *kube.Reader, controller, namespace string) (*Snapshot, error) {
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
	options.NoProxies, options.ControllerNamespace = true, namespace
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
	if err := s.add(r.Contents(ctx, secrets, configMaps)); err != nil {
		return err
	}
	return s.readChildren(ctx, r)
}

// readChildren reads the objects that blueprints have made. What may not be read counts as missing.
func (s *Snapshot) readChildren(ctx context.Context, r *kube.Reader) error {
	for of := range s.ChildKinds() {
		list, namespaced, err := r.Labelled(ctx, of, infra.PartOfLabel)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("read objects of the kind %s: %w", of.Kind, err)
		}
		s.Update(func(tx *flow.Tx) {
			s.SetScope(tx, of, &namespaced)
			for i := range list {
				s.SetChild(tx, blueprint.RefOf(&list[i]), &list[i])
			}
		})
	}
	return nil
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
