package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The bounds of a message, in bytes.
const (
	// MaxObject bounds an object. An API server takes 1.5 MiB at the most.
	MaxObject = 4 << 20
	// MaxResponse bounds what a client takes at once.
	MaxResponse = 16 << 20
	// MaxRequest bounds what a server takes at once: a client that connects again names all
	// objects of a kind with their versions, about 100 bytes each.
	MaxRequest = 64 << 20
)

// core is how the group of the core API is written, which is empty otherwise.
const core = "core"

// TypeURL names a kind: GROUP/VERSION/KIND.
func TypeURL(d *kind.Descriptor) string {
	return cmp.Or(d.Kind.Group(), core) + "/" + d.Versions[0].Name + "/" + d.Kind.Name()
}

// Types are the kinds that are published, by their type URLs.
type Types map[string]*kind.Descriptor

// TypesOf returns those of a table.
func TypesOf(kinds *kind.Table, experimental bool) Types {
	types := Types{}
	for d := range kinds.Rows() {
		if d.Reading != kind.MetadataOnly && (d.Channel == kind.Standard || experimental) {
			types[TypeURL(d)] = d
		}
	}
	return types
}

// Name is the name of an object's resource: NAMESPACE/NAME, or NAME in no namespace.
func Name(n object.Name) string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// ParseName returns the object's name that a resource has.
func ParseName(d *kind.Descriptor, text string) (n object.Name, ok bool) {
	namespace, name, namespaced := strings.Cut(text, "/")
	if namespaced != (d.Scope == kind.Namespaced) {
		return object.Name{}, false
	}
	if !namespaced {
		namespace, name = "", text
	}
	return object.Name{Namespace: namespace, Name: name}, name != "" && (!namespaced || namespace != "") && !strings.Contains(name, "/")
}

// Encode returns an object as JSON.
func Encode(o source.Object) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	meta, _ := content["metadata"].(map[string]any)
	for _, name := range [...]string{"creationTimestamp", "managedFields", "resourceVersion", "selfLink"} {
		delete(meta, name)
	}
	if born := o.GetCreationTimestamp(); !born.IsZero() {
		meta["creationTimestamp"] = born.UTC().Format(time.RFC3339Nano)
	}
	return json.Marshal(content)
}

// Resource makes the resource of an object.
func Resource(o source.Object) (*discoveryv3.Resource, error) {
	text, err := Encode(o)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxObject {
		return nil, fmt.Errorf("it has %d bytes, at most %d are published", len(text), MaxObject)
	}
	body, err := anypb.New(wrapperspb.String(string(text)))
	if err != nil {
		return nil, err
	}
	return &discoveryv3.Resource{
		Name: Name(source.KeyOf(o).Name), Version: strconv.FormatUint(xxhash.Sum64(text), 16), Resource: body,
	}, nil
}

// Text returns the JSON of a resource.
func Text(r *discoveryv3.Resource) ([]byte, error) {
	body := &wrapperspb.StringValue{}
	if r.GetResource() == nil {
		return nil, errors.New("it has no content")
	}
	if err := r.GetResource().UnmarshalTo(body); err != nil {
		return nil, errors.New("its content is not a google.protobuf.StringValue")
	}
	if len(body.GetValue()) > MaxObject {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(body.GetValue()), MaxObject)
	}
	return []byte(body.GetValue()), nil
}
