package wire

import (
	"encoding/json"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The call by which clients tell what has become of objects: responses of the protocol, in the other direction.
const (
	StatusService = "gatehouse.config.v1.Statuses"
	StatusStream  = "Report"
	StatusMethod  = "/" + StatusService + "/" + StatusStream
)

// MaxStatus bounds a status, in bytes of JSON.
const MaxStatus = 1 << 20

// StatusResource makes the resource of an object's status.
func StatusResource(n object.Name, status any) (*discoveryv3.Resource, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	body, err := anypb.New(wrapperspb.String(string(text)))
	if err != nil {
		return nil, err
	}
	return &discoveryv3.Resource{Name: Name(n), Resource: body}, nil
}

// Status returns the status that a resource is of, in the Go type of the kind.
func Status(d *kind.Descriptor, r *discoveryv3.Resource) (any, error) {
	text, err := Text(r)
	switch {
	case err != nil:
		return nil, err
	case d.Status == nil:
		return nil, fmt.Errorf("objects of kind %s have no status", d.Kind.Name())
	case len(text) > MaxStatus:
		return nil, fmt.Errorf("its status has %d bytes, at most %d are read", len(text), MaxStatus)
	}
	o := d.New()
	whole, err := json.Marshal(map[string]json.RawMessage{"status": text})
	if err == nil {
		err = json.Unmarshal(whole, o)
	}
	if err != nil {
		return nil, fmt.Errorf("its status can't be read: %w", err)
	}
	return d.Status.Of(o), nil
}
