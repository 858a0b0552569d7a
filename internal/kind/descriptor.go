package kind

import (
	"io/fs"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Object is an object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// List is a list of objects, as the API server answers.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Descriptor is the row of a kind.
type Descriptor struct {
	Kind   object.Kind
	Plural string // as paths of the API and rules for access have it
	// Words are what people call the kind on a command line besides its name, each in
	// lower case and in the singular.
	Words   []string
	Scope   Scope
	Family  Family
	Channel Channel
	Reading Reading
	// For is the kind, above in the table, for whose objects alone those of this one are read in a cluster: as long as
	// there are some. It is zero for most kinds.
	For object.Kind
	// Guards says that objects of the kind say who may pass. While there may be some that
	// can't be read, nothing is served that they may be for.
	Guards bool
	// Inherited says that objects of the kind are policies of ours for what is below their
	// targets too, and say in a Programmed condition whether they are in force.
	Inherited bool
	// Fleets says that what fleets are made of depends on objects of the kind, so that those who only make
	// fleets read it. See Table.OfFleets.
	Fleets bool
	// Custom kinds are defined by a CustomResourceDefinition; the API server's code
	// defines the others.
	Custom bool
	// Versions are those that are read, the best first. Its Go type is what objects
	// of all versions become.
	Versions []Version
	// Status is nil for kinds whose status is not ours to write.
	Status *Status
	// Schemas has what CustomResourceDefinitions say of a custom kind, as
	// source/schema/gen.go writes it; nil for a kind that is among those that
	// source/schema has with it.
	Schemas fs.FS
}

// Scope says whether objects of a kind are in a namespace.
type Scope int

// The scopes.
const (
	Namespaced Scope = iota
	ClusterScoped
)

// Family is what kinds that are handled alike have in common.
type Family int

// The families.
const (
	Referent Family = iota // what objects of the other families refer to
	Front                  // GatewayClass, Gateway, ListenerSet: what routes attach to, from the outermost
	Route
	Policy
)

// Channel is the least release channel of the Gateway API in which a kind is read.
type Channel int

// The channels.
const (
	Standard Channel = iota
	// ExperimentalChannel is of kinds that only kinds and fields of the experimental
	// channel refer to.
	ExperimentalChannel
)

// Reading is where objects of a kind are read, and how.
type Reading int

// The readings.
const (
	Everywhere Reading = iota // from files, and watched in a cluster
	// ByName is from files; in a cluster, names are watched, and the contents of those
	// that are referred to are read.
	ByName
	// MetadataOnly is not from files; in a cluster, the metadata is watched.
	MetadataOnly
)

// Version is a version of a kind.
type Version struct {
	Name string
	New  func() Object
	// List is nil for a version that is read from files only.
	List func() List
	// Convert makes the Go type of the first version of an object; nil where it is that.
	Convert func(Object) Object
}

// New returns an empty object.
func (d *Descriptor) New() Object { return d.Versions[0].New() }

// String names the kind as rules for access do: plural.group.
func (d *Descriptor) String() string {
	if d.Kind.Group() == "" {
		return d.Plural
	}
	return d.Plural + "." + d.Kind.Group()
}

// DefinitionName is the name of a custom kind's CustomResourceDefinition.
func (d *Descriptor) DefinitionName() string { return d.Plural + "." + d.Kind.Group() }

// GroupVersionKind names a version.
func (d *Descriptor) GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Kind.Group(), Version: version, Kind: d.Kind.Name()}
}

// TypeMeta is what objects of a version say of themselves.
func (d *Descriptor) TypeMeta(version string) metav1.TypeMeta {
	gvk := d.GroupVersionKind(version)
	return metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}

// APIVersion is group and version of what all objects become.
func (d *Descriptor) APIVersion() string { return d.TypeMeta(d.Versions[0].Name).APIVersion }

// KeyOf names an object of the kind.
func (d *Descriptor) KeyOf(o metav1.Object) object.Key {
	return object.Key{Kind: d.Kind, Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// Word is the kind's name on a command line.
func (d *Descriptor) Word() string { return strings.ToLower(d.Kind.Name()) }

// Watched are the versions in the form in which objects are watched in a cluster, the
// best first.
func (d *Descriptor) Watched() []Version {
	var out []Version
	for _, v := range d.Versions {
		switch {
		case v.List == nil:
		case d.Reading == Everywhere:
			out = append(out, v)
		default:
			out = append(out, metadata(d.GroupVersionKind(v.Name)))
		}
	}
	return out
}
