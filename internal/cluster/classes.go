package cluster

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// classes logs which classes of ours have been deleted, and creates the one that belongs to
// the installation again when it is gone, while a replica leads.
type classes struct {
	tableReader[string, *topology.Class]
	client     client.Client
	own        *configuration.GatewayClass // nil for none
	controller gwv1.GatewayController
	log        *slog.Logger
	known      chan struct{} // closed when all Gateways are known
	news       chan struct{} // of own

	mu      sync.Mutex
	deleted map[string]bool
	there   bool              // own
	last    metav1.ObjectMeta // of own, when it was there
}

func newClasses(c client.Client, p *pipeline.Pipeline, config *configuration.Configuration, log *slog.Logger) *classes {
	s := &classes{
		client: c, own: config.GatewayClass, controller: gwv1.GatewayController(config.ControllerName), log: log,
		known: make(chan struct{}), news: make(chan struct{}, 1), deleted: map[string]bool{},
	}
	s.tableReader = tableReader[string, *topology.Class]{p.Graph.Classes, s.set, s.gone}
	return s
}

func (s *classes) set(name string, class *topology.Class) {
	if class.Object == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if is := class.Object.DeletionTimestamp != nil; is != s.deleted[name] {
		if s.deleted[name] = is; is {
			s.log.Warn("a GatewayClass is being deleted", "object", "GatewayClass "+name, "problem", class.Accepted.Message)
		}
	}
	if s.own != nil && s.own.Name == name {
		s.there = true
		s.last = metav1.ObjectMeta{Labels: class.Object.Labels, Annotations: class.Object.Annotations}
	}
}

func (s *classes) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.deleted, name)
	if s.own != nil && s.own.Name == name {
		s.there = false
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
}

func (s *classes) complete() { close(s.known) }

func (s *classes) changed(object.Key) {}

// run creates the class again until ctx ends.
func (s *classes) run(ctx context.Context) error {
	select {
	case <-s.known:
	case <-ctx.Done():
		return nil
	}
	if s.own == nil {
		<-ctx.Done()
		return nil
	}
	failed := false
	for {
		var again <-chan time.Time
		if s.missing() {
			again = time.After(classAbsence)
		}
		select {
		case <-s.news:
			continue
		case <-again:
		case <-ctx.Done():
			return nil
		}
		if !s.missing() {
			continue
		}
		err := s.create(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			s.log.Error("the GatewayClass of this installation can't be created; trying again", "object", "GatewayClass "+s.own.Name, "error", err)
		}
		failed = err != nil
	}
}

// classAbsence is how long a class must be gone until it is created again. Who uninstalls
// deletes the class and the controllers, which then have the time to end; who installs
// makes the class after the controllers.
const classAbsence = 10 * time.Second

func (s *classes) missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.there
}

// create makes the class as the configuration has it, with the labels and annotations that
// it had last: those who installed it know it by them. A class of that name that is there,
// whoever's, stays as it is.
func (s *classes) create(ctx context.Context) error {
	s.mu.Lock()
	labels, annotations := maps.Clone(s.own.Labels), maps.Clone(s.own.Annotations)
	if s.last.Labels != nil {
		labels = maps.Clone(s.last.Labels)
	}
	if s.last.Annotations != nil {
		annotations = maps.Clone(s.last.Annotations)
	}
	s.mu.Unlock()
	class := &gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.own.Name, Labels: labels, Annotations: annotations},
		Spec:       gwv1.GatewayClassSpec{ControllerName: s.controller},
	}
	if s.own.Description != "" {
		class.Spec.Description = &s.own.Description
	}
	if ref := s.own.ParametersRef; ref != nil {
		namespace := gwv1.Namespace(ref.Namespace)
		class.Spec.ParametersRef = &gwv1.ParametersReference{Group: "gatehouse.dev", Kind: "GatewayParameters", Name: ref.Name, Namespace: &namespace}
	}
	err := s.client.Create(ctx, class, client.FieldOwner(infra.ManagedBy))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		s.log.Warn("the GatewayClass of this installation was gone, and is created again", "object", "GatewayClass "+s.own.Name)
	}
	return err
}
