package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// deletionPatience is how long the deletion of an object may take before people are told.
const deletionPatience = time.Minute

// isUnwanted asks the API server whether a Gateway is to have no objects; said is what the
// pipeline says. That it knows no such Gateway may have other causes: a class that is missing, or a
// namespace that isn't watched.
func (ch *Children) isUnwanted(ctx context.Context, gateway object.Name, said bool) (bool, error) {
	live, err := ch.readGateway(ctx, gateway)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	name, _, _ := unstructured.NestedString(live.Object, "spec", "gatewayClassName")
	class, err := ch.readClass(ctx, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	controller, _, _ := unstructured.NestedString(class.Object, "spec", "controllerName")
	return said || controller != ch.o.ControllerName, nil
}

// prune deletes what is in the inventory and should not be, one wave after the other: what others read is
// there until these are gone. What a resource had of which it isn't known what there should be stays.
func (s *childrenSync) prune(ctx context.Context) error {
	wanted, undecided := map[objectKey]bool{}, map[string]bool{}
	if s.want != nil {
		for i := range s.want.Children {
			wanted[keyOfRef(s.want.Children[i].Ref())] = true
		}
		for _, h := range s.want.Undecided {
			undecided[h.ID] = true
		}
	}
	var going []inventoryEntry
	for _, e := range slices.Backward(s.in.entries) {
		if !wanted[keyOfRef(e.Ref)] && !undecided[e.ID] {
			going = append(going, e)
		}
	}
	slices.SortStableFunc(going, func(a, b inventoryEntry) int { return a.Wave - b.Wave })
	var failed []error
	gone := map[objectKey]bool{}
	for i, e := range going {
		if i > 0 && e.Wave > going[i-1].Wave && len(gone) < i {
			s.counts[stateDeleting] += len(going) - i
			break
		}
		if why := s.stays(e); why != nil {
			s.problems[e.Ref] = *why
			if why.reason == "" {
				s.counts[stateReplaced]++
			} else {
				s.counts[stateStuck]++
			}
			continue
		}
		left, err := s.discard(ctx, e.Ref)
		if by := s.successor(e); by != nil && err == nil && left != nil && left.GetDeletionTimestamp() == nil {
			s.event(corev1.EventTypeNormal, reasonReplaced, fmt.Sprintf("%s has taken the place of %s", by.Ref(), e.Ref))
		}
		switch {
		case err != nil:
			s.counts[stateStuck]++
			s.problems[e.Ref] = explain(e.Kind, err)
			failed = append(failed, err)
		case left == nil:
			gone[keyOfRef(e.Ref)] = true
		case s.isStuck(left):
			s.counts[stateStuck]++
			s.problems[e.Ref] = problem{reasonDeletionStuck, fmt.Sprintf("is being deleted for more than %s; somebody has to take its finalizers from it: %s",
				s.deletionPatience, strings.Join(left.GetFinalizers(), ", "))}
		default:
			s.counts[stateDeleting]++
		}
	}
	if len(gone) > 0 {
		s.in.entries = slices.DeleteFunc(s.in.entries, func(e inventoryEntry) bool { return gone[keyOfRef(e.Ref)] })
		if err := s.writeInventory(ctx, s.in); err != nil {
			failed = append(failed, err)
		}
	}
	if len(gone) < len(going) {
		s.queue.AddAfter(s.in.gateway, lookAgain)
	}
	return errors.Join(failed...)
}

// isStuck reports whether an object is being deleted for too long.
func (s *childrenSync) isStuck(o *unstructured.Unstructured) bool {
	at := o.GetDeletionTimestamp()
	return at != nil && time.Since(at.Time) > s.deletionPatience
}

// discard deletes an object that is ours, and returns what there is of it still; nil where it is
// gone.
func (s *childrenSync) discard(ctx context.Context, ref blueprint.Ref) (*unstructured.Unstructured, error) {
	kind, err := s.served(ref.Kind)
	if meta.IsNoMatchError(err) {
		return nil, nil // its kind went, and all objects with it
	}
	if err != nil {
		return nil, err
	}
	_ = s.follow(ctx, kind) // its end is seen earlier then
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name.Name)
	found, err := s.read(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	live, ok := found.(*unstructured.Unstructured)
	if !ok || live.GetLabels()[infra.PartOfLabel] != s.in.id {
		return nil, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return live, nil
	}
	return live, s.delete(ctx, kind.Kind, live)
}

// served is a kind in the version that was written, or in another one where the cluster doesn't
// have that any more.
func (s *childrenSync) served(kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	mapper := s.client.RESTMapper()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = mapper.RESTMapping(kind.GroupKind())
	}
	if err != nil {
		return kind, err
	}
	return mapping.GroupVersionKind, nil
}
