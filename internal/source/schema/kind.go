package schema

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// row is a kind with what validating its objects takes.
type row struct {
	*kind.Descriptor
	rules

	// broken is what is wrong with the schemas of a custom kind.
	broken func() error

	mu       sync.Mutex
	compiled map[channelVersion]*lazySchema
}

// rules are what the API server's code does with the objects of a kind.
type rules struct {
	validName validation.ValidateNameFunc
	// finish defaults and validates; nil for custom kinds, whose rules are in their
	// CustomResourceDefinitions.
	finish func(source.Object) field.ErrorList
	// told says that the status is read too, which no file has of other kinds.
	told bool
}

// builtIn are the rules of the kinds that are not custom.
var builtIn = map[object.Kind]rules{
	kind.Service:            {validation.NameIsDNS1035Label, finisher(finishService), false},
	kind.Secret:             {validation.NameIsDNSSubdomain, finisher(finishSecret), false},
	kind.ConfigMap:          {validation.NameIsDNSSubdomain, finisher(finishConfigMap), false},
	kind.Namespace:          {validation.NameIsDNSLabel, finisher(finishNamespace), false},
	kind.EndpointSlice:      {validation.NameIsDNSSubdomain, finisher(finishEndpointSlice), false},
	kind.Pod:                {validation.NameIsDNSSubdomain, finisher(finishPod), true},
	kind.ClusterTrustBundle: {validTrustBundleName, finisher(finishClusterTrustBundle), false},
	kind.Ingress:            {validation.NameIsDNSSubdomain, finisher(finishIngress), false},
}

// finisher adapts a typed rule set to the table.
func finisher[T source.Object](finish func(T) field.ErrorList) func(source.Object) field.ErrorList {
	return func(o source.Object) field.ErrorList { return finish(o.(T)) }
}

// rows has the row of each *kind.Descriptor that a Validator was made for: compiled
// schemas depend on nothing else, and so all Validators share them.
var rows sync.Map

// rowsOf returns the kinds that are read from files.
func rowsOf(kinds *kind.Table) ([]*row, error) {
	var out []*row
	for d := range kinds.Rows() {
		if d.Reading == kind.MetadataOnly {
			continue
		}
		r := &row{Descriptor: d, rules: rules{validName: validation.NameIsDNSSubdomain}}
		if d.Custom {
			r.broken = sync.OnceValue(func() error {
				_, err := r.definition(experimental)
				return err
			})
		} else {
			var ok bool
			if r.rules, ok = builtIn[d.Kind]; !ok {
				return nil, fmt.Errorf("%s: no rules are known of this kind", d)
			}
		}
		shared, _ := rows.LoadOrStore(d, r)
		out = append(out, shared.(*row))
	}
	return out, nil
}

// schemas returns where the kind's schemas are.
func (k *row) schemas() fs.FS {
	if k.Schemas != nil {
		return k.Schemas
	}
	return crds
}

// served reports whether a version of a kind that is not custom can be read.
func (k *row) served(version string) bool {
	return slices.ContainsFunc(k.Versions, func(v kind.Version) bool { return v.Name == version })
}
