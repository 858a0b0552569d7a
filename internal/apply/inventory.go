package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// An inventory says which objects a Gateway has by its blueprint, in the order in which they
// were made. It follows the conventions of ApplySets (KEP-3659), by which other tools find them
// too. It is a ConfigMap in the controller's namespace: it outlives the Gateway, its namespace
// and the blueprint, and nobody but the platform can write what is in it, and so have the
// controller delete.
type inventory struct {
	gateway object.Name
	name    string
	id      string // of the ApplySet
	entries []inventoryEntry
	version string // of the ConfigMap; empty where there is none
}

type inventoryEntry struct {
	blueprint.Ref
	blueprint.Place
	Wave int // see blueprint.Child
}

// storedEntry is an entry as it is written.
type storedEntry struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Resource   string      `json:"resource"`
	Route      *object.Key `json:"route,omitempty"`
	Each       int         `json:"each,omitempty"`
	Wave       int         `json:"wave,omitempty"`
}

const (
	toolAnnotation   = "applyset.kubernetes.io/tooling"
	kindsAnnotation  = "applyset.kubernetes.io/contains-group-kinds"
	spacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	inventoryKey     = "objects"
)

func (ch *Children) newInventory(gateway object.Name) *inventory {
	in := &inventory{gateway: gateway, name: infra.InventoryName(ch.o.ControllerName, gateway)}
	in.id = infra.SetID(in.name, ch.o.Namespace)
	return in
}

// inventory returns the inventory of a Gateway. The API server is asked once, since nobody else writes it, and
// again when a write has failed.
func (ch *Children) inventory(ctx context.Context, gateway object.Name) (*inventory, error) {
	ch.mu.Lock()
	in := ch.inventories[gateway]
	ch.mu.Unlock()
	if in != nil {
		return in, nil
	}
	in, err := ch.readInventory(ctx, gateway)
	if err != nil {
		return nil, err
	}
	ch.mu.Lock()
	ch.inventories[gateway] = in
	ch.mu.Unlock()
	return in, nil
}

func (ch *Children) readInventory(ctx context.Context, gateway object.Name) (*inventory, error) {
	in := ch.newInventory(gateway)
	stored := &corev1.ConfigMap{}
	err := ch.client.Get(ctx, client.ObjectKey{Namespace: ch.o.Namespace, Name: in.name}, stored)
	if apierrors.IsNotFound(err) {
		return in, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the inventory of Gateway %s: %w", gateway, err)
	}
	var entries []storedEntry
	if err := json.Unmarshal([]byte(stored.Data[inventoryKey]), &entries); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s, the inventory of Gateway %s, can't be read: %w", stored.Namespace, stored.Name, gateway, err)
	}
	in.version = stored.ResourceVersion
	for _, e := range entries {
		place := blueprint.Place{ID: e.Resource, Each: e.Each}
		if e.Route != nil {
			place.Route = *e.Route
		}
		in.entries = append(in.entries, inventoryEntry{
			blueprint.Ref{Kind: schema.FromAPIVersionAndKind(e.APIVersion, e.Kind), Name: object.Name{Namespace: e.Namespace, Name: e.Name}}, place, e.Wave,
		})
	}
	return in, nil
}

// made are the objects of each place.
func (in *inventory) made() map[blueprint.Place][]blueprint.Ref {
	out := map[blueprint.Place][]blueprint.Ref{}
	for _, e := range in.entries {
		out[e.Place] = append(out[e.Place], e.Ref)
	}
	return out
}

// remember adds what is to be made.
func (ch *Children) remember(ctx context.Context, in *inventory, want *blueprint.Children) error {
	at := make(map[objectKey]int, len(in.entries))
	for i, e := range in.entries {
		at[keyOfRef(e.Ref)] = i
	}
	changed := false
	for i := range want.Children {
		child := &want.Children[i]
		e := inventoryEntry{child.Ref(), child.Place, child.Wave}
		switch i, known := at[keyOfRef(e.Ref)]; {
		case !known:
			in.entries, changed = append(in.entries, e), true
		case in.entries[i] != e:
			in.entries[i], changed = e, true
		}
	}
	if !changed {
		return nil
	}
	return ch.writeInventory(ctx, in)
}

// writeInventory writes it, or deletes an empty one.
func (ch *Children) writeInventory(ctx context.Context, in *inventory) error {
	err := ch.storeInventory(ctx, in)
	if err != nil || len(in.entries) == 0 {
		ch.mu.Lock()
		delete(ch.inventories, in.gateway)
		ch.mu.Unlock()
	}
	return err
}

func (ch *Children) storeInventory(ctx context.Context, in *inventory) error {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: ch.o.Namespace, Name: in.name, ResourceVersion: in.version,
		Labels:      map[string]string{infra.SetIDLabel: in.id, infra.ManagedByLabel: infra.ManagedBy},
		Annotations: map[string]string{toolAnnotation: infra.ManagedBy + "/v1", infra.GatewayAnnotation: in.gateway.String(), infra.ControllerAnnotation: ch.o.ControllerName},
	}}
	if len(in.entries) == 0 {
		if in.version == "" {
			return nil
		}
		return client.IgnoreNotFound(ch.client.Delete(ctx, o, client.Preconditions(metav1.Preconditions{ResourceVersion: &in.version})))
	}
	entries := make([]storedEntry, len(in.entries))
	var kinds, spaces []string
	for i, e := range in.entries {
		apiVersion, kind := e.Kind.ToAPIVersionAndKind()
		entries[i] = storedEntry{apiVersion, kind, e.Namespace, e.Name.Name, e.ID, nil, e.Each, e.Wave}
		if e.Route != (object.Key{}) {
			entries[i].Route = &e.Route
		}
		kinds = append(kinds, e.Kind.GroupKind().String())
		if e.Namespace != ch.o.Namespace && e.Namespace != "" {
			spaces = append(spaces, e.Namespace)
		}
	}
	o.Annotations[kindsAnnotation], o.Annotations[spacesAnnotation] = joined(kinds), joined(spaces)
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	o.Data = map[string]string{inventoryKey: string(text)}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := ch.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), ch.manager, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the inventory of Gateway %s: %w", in.gateway, err)
	}
	in.version = u.GetResourceVersion()
	return nil
}

func joined(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// enqueueInventories wakes all Gateways that have an inventory: some may not exist any more.
func (ch *Children) enqueueInventories(ctx context.Context) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := ch.client.List(ctx, all, client.InNamespace(ch.o.Namespace), client.HasLabels{infra.SetIDLabel}); err != nil {
		ch.log.Error("objects of Gateways that are gone can't be looked for", "error", err)
		return
	}
	for i := range all.Items {
		annotations := all.Items[i].Annotations
		if gateway, ok := object.ParseName(annotations[infra.GatewayAnnotation]); ok && annotations[infra.ControllerAnnotation] == ch.o.ControllerName {
			ch.queue.Add(gateway)
		}
	}
}
