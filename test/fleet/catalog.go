package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// catalog knows each version of each resource once, however many proxies have it.
type catalog struct {
	mu       sync.RWMutex
	contents map[contentKey]*content
	slots    [envoy.NumTypes]map[string]int // by name
	names    [envoy.NumTypes][]string       // by slot
}

type contentKey struct {
	typ           envoy.Type
	name, version string
}

// content is a version of a resource.
type content struct {
	slot    int // of its name, among those of its type
	version string
	refers  []reference
	edits   []int // of EditHeader in it
}

// reference is a resource that another one makes a proxy ask for.
type reference struct {
	typ  envoy.Type
	slot int // -1 for all of the type
}

func newCatalog() *catalog {
	c := &catalog{contents: map[contentKey]*content{}}
	for t := range c.slots {
		c.slots[t] = map[string]int{}
	}
	return c
}

// of returns what a resource is.
func (c *catalog) of(t envoy.Type, r *discoveryv3.Resource) (*content, error) {
	key := contentKey{t, r.GetName(), r.GetVersion()}
	c.mu.RLock()
	known := c.contents[key]
	c.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	m, err := r.GetResource().UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, r.GetName(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.contents[key]; known != nil {
		return known, nil
	}
	made := &content{slot: c.slot(t, r.GetName()), version: r.GetVersion(), edits: editsIn(r.GetResource().GetValue())}
	err = walk(m, func(t envoy.Type, name string) {
		ref := reference{t, -1}
		if name != "" {
			ref.slot = c.slot(t, name)
		}
		made.refers = append(made.refers, ref)
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", t, r.GetName(), err)
	}
	c.contents[key] = made
	return made, nil
}

// slot is the number of a name; c.mu is held.
func (c *catalog) slot(t envoy.Type, name string) int {
	slot, ok := c.slots[t][name]
	if !ok {
		slot = len(c.names[t])
		c.slots[t][name] = slot
		c.names[t] = append(c.names[t], name)
	}
	return slot
}

// find is slot for a name that may not be known.
func (c *catalog) find(t envoy.Type, name string) (int, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	slot, ok := c.slots[t][name]
	return slot, ok
}

func (c *catalog) name(t envoy.Type, slot int) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.names[t][slot]
}

var editMark = regexp.MustCompile(`edit-(\d{6})`)

// mark is the value of EditHeader after so many edits.
func mark(edit int) string { return fmt.Sprintf("edit-%06d", edit) }

func editsIn(body []byte) (edits []int) {
	for _, m := range editMark.FindAllSubmatch(body, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n > 0 {
			edits = append(edits, n)
		}
	}
	return edits
}

// walk tells what Envoy asks for when it takes in a message; an empty name is all of the type.
func walk(m proto.Message, asks func(t envoy.Type, name string)) (err error) {
	switch m := m.(type) {
	case *anypb.Any:
		inner, err := m.UnmarshalNew()
		if err != nil {
			return err
		}
		return walk(inner, asks)
	case *clusterv3.Cluster:
		if m.GetType() == clusterv3.Cluster_EDS {
			name := m.GetEdsClusterConfig().GetServiceName()
			if name == "" {
				name = m.GetName()
			}
			asks(envoy.Endpoints, name)
		}
	case *tlsv3.SdsSecretConfig:
		if m.GetSdsConfig() != nil {
			asks(envoy.Secrets, m.GetName())
		}
	case *hcmv3.Rds:
		asks(envoy.Routes, m.GetRouteConfigName())
	case *hcmv3.ScopedRds:
		asks(envoy.Scopes, "")
	case *hcmv3.HttpFilter:
		if m.GetConfigDiscovery() != nil {
			asks(envoy.Extensions, m.GetName())
		}
	case *routev3.ScopedRouteConfiguration:
		asks(envoy.Routes, m.GetRouteConfigurationName())
	case *routev3.RouteConfiguration:
		return nil // it makes nobody ask for anything
	}
	each := func(v protoreflect.Value) bool {
		err = walk(v.Message().Interface(), asks)
		return err == nil
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() == nil {
				return true
			}
			ok := true
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { ok = each(v); return ok })
			return ok
		case f.Message() == nil:
			return true
		case f.IsList():
			for i := range v.List().Len() {
				if !each(v.List().Get(i)) {
					return false
				}
			}
			return true
		default:
			return each(v)
		}
	})
	return err
}
