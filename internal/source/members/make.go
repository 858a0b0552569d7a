package members

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// made is what is made of a Service that clusters export; nil for nothing.
type made struct {
	imported *mcsv1beta1.ServiceImport
	slices   map[string]madeSlice // by their names
}

// madeSlice is an EndpointSlice with the one that it is made of.
type madeSlice struct{ of, slice *discoveryv1.EndpointSlice }

// since adds to a batch what is another than before.
func (m *made) since(before *made, b *source.Batch) {
	if before == nil {
		before = &made{}
	}
	if m == nil {
		m = &made{}
	}
	switch {
	case m.imported == before.imported:
	case m.imported != nil:
		b.Set = append(b.Set, m.imported)
	default:
		b.Deleted = append(b.Deleted, source.KeyOf(before.imported))
	}
	for name, s := range m.slices {
		if before.slices[name].slice != s.slice {
			b.Set = append(b.Set, s.slice)
		}
	}
	for name, s := range before.slices {
		if _, ok := m.slices[name]; !ok {
			b.Deleted = append(b.Deleted, source.KeyOf(s.slice))
		}
	}
}

// make makes what there is of a Service now. What hasn't changed is the object that it was before. The caller has the lock.
func (s *Source) make(name object.Name, before *made) *made {
	var exporters []*member
	for _, m := range s.members {
		if m.exports(name) {
			exporters = append(exporters, m)
		}
	}
	if len(exporters) == 0 {
		return nil
	}
	if before == nil {
		before = &made{}
	}
	out := &made{imported: before.imported, slices: map[string]madeSlice{}}
	for _, m := range exporters {
		for _, slice := range m.contents.slices[name] {
			as := m.Name + "." + slice.Name
			if was := before.slices[as]; was.of == slice {
				out.slices[as] = was
			} else {
				out.slices[as] = madeSlice{slice, sliceOf(slice, as, name, m.Name)}
			}
		}
	}
	// Where they disagree, the Service counts that was exported first (KEP-1645, conflict resolution).
	first := slices.MinFunc(exporters, func(a, b *member) int {
		return a.contents.exports[name].Compare(b.contents.exports[name])
	})
	if i := importOf(first.contents.services[name]); before.imported == nil || !reflect.DeepEqual(before.imported.Spec, i.Spec) {
		out.imported = i
	}
	return out
}

// exports reports whether a cluster exports a Service that it has.
func (m *member) exports(name object.Name) bool {
	if m.forgotten {
		return false
	}
	_, exported := m.contents.exports[name]
	return exported && m.contents.services[name] != nil
}

// sliceOf is an EndpointSlice of an exported Service, as an MCS controller would copy it.
func sliceOf(s *discoveryv1.EndpointSlice, as string, service object.Name, cluster string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: kind.EndpointSlice.Name()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: as, CreationTimestamp: s.CreationTimestamp,
			Labels: map[string]string{mcsv1beta1.LabelServiceName: service.Name, mcsv1beta1.LabelSourceCluster: cluster},
		},
		AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: s.Ports,
	}
}

// importOf is what a Service is to other clusters.
func importOf(s *corev1.Service) *mcsv1beta1.ServiceImport {
	out := &mcsv1beta1.ServiceImport{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: kind.ServiceImport.Name()},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, SessionAffinity: s.Spec.SessionAffinity, SessionAffinityConfig: s.Spec.SessionAffinityConfig,
		},
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Spec.Type = mcsv1beta1.Headless
	}
	for _, p := range s.Spec.Ports {
		out.Spec.Ports = append(out.Spec.Ports, mcsv1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	slices.SortFunc(out.Spec.Ports, func(a, b mcsv1beta1.ServicePort) int { return cmp.Compare(a.Port, b.Port) })
	return out
}
