package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/json"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// namespace holds all objects of the bench.
const namespace = "bench"

// listenerPort is the Gateway's port before the offset.
const listenerPort = 80

const gatewayManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: gateway
  namespace: bench
spec:
  gatewayClassName: gatehouse
  listeners:
    - name: http
      protocol: HTTP
      port: 80
`

// entry is a route with a host, a Service and an EndpointSlice of its own: the
// unit that the bench counts.
type entry struct {
	index   int
	version int // what the route makes Envoy say in the header version
	port    int // of the backend on loopback that the EndpointSlice names
	// shares is that the route leads to one of the manyServices, under a path of its own.
	shares bool
}

func (e entry) name() string     { return fmt.Sprintf("r%05d", e.index) }
func (e entry) host() string     { return e.name() + ".example.com" }
func (e entry) fileName() string { return e.name() + ".yaml" }

// request is what the route answers.
func (e entry) request() visit.Request { return visit.Request{Host: e.host(), Path: e.path()} }

func (e entry) path() string {
	if e.shares {
		return "/" + e.name()
	}
	return "/"
}

// service is the name of the Service that the route leads to.
func (e entry) service() string {
	if e.shares {
		return entry{index: e.index % manyServices}.name()
	}
	return e.name()
}

// manifest returns the entry's objects as a user would write them.
func (e entry) manifest() []byte {
	if e.shares {
		return e.routeManifest()
	}
	return slices.Concat(e.routeManifest(), []byte("---\n"), e.backendManifest())
}

// routeManifest returns the route.
func (e entry) routeManifest() []byte {
	return fmt.Appendf(nil, `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: %[1]s
  namespace: bench
spec:
  parentRefs:
    - name: gateway
  hostnames:
    - %[2]s
  rules:
    - matches:
        - path:
            type: PathPrefix
            value: %[4]s
      filters:
        - type: ResponseHeaderModifier
          responseHeaderModifier:
            set:
              - name: version
                value: "%[3]d"
      backendRefs:
        - name: %[5]s
          port: 80
`, e.name(), e.host(), e.version, e.path(), e.service())
}

// backendManifest returns the Service and its EndpointSlice.
func (e entry) backendManifest() []byte { return backendManifest(e.name(), e.port) }

func backendManifest(name string, port int) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: bench
spec:
  ports:
    - name: http
      port: 80
      targetPort: 8080
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s
  namespace: bench
  labels:
    kubernetes.io/service-name: %[1]s
addressType: IPv4
ports:
  - name: http
    port: %[2]d
endpoints:
  - addresses:
      - 127.0.0.1
`, name, port)
}

// document is one object before decoding and validation.
type document = map[string]any

// documents returns the generic form of a text's objects.
func documents(text []byte) ([]document, error) {
	var docs []document
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(part)
		if err != nil {
			return nil, fmt.Errorf("generated manifest: %w", err)
		}
		var doc document
		if err := json.Unmarshal(text, &doc); err != nil { // unlike encoding/json, it tells integers
			return nil, fmt.Errorf("generated manifest: %w", err)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// decode turns a document into a validated object, as every source does.
func decode(v *schema.Validator, doc document) (source.Object, error) {
	id, err := v.Identify(doc)
	if err != nil {
		return nil, err
	}
	object, errs := v.Decode(id, doc)
	if len(errs) > 0 {
		return nil, fmt.Errorf("generated %s: %w", id.Key, errs.ToAggregate())
	}
	return object, nil
}

// objects are an entry's three objects.
type objects struct {
	route   *gwv1.HTTPRoute
	service *corev1.Service
	slice   *discoveryv1.EndpointSlice
}

func (o objects) all() []source.Object { return []source.Object{o.route, o.service, o.slice} }

func (o objects) keys() []object.Key {
	return []object.Key{
		{Kind: kind.HTTPRoute, Name: object.Name{Namespace: namespace, Name: o.route.Name}},
		{Kind: kind.Service, Name: object.Name{Namespace: namespace, Name: o.service.Name}},
		{Kind: kind.EndpointSlice, Name: object.Name{Namespace: namespace, Name: o.slice.Name}},
	}
}

// decodeEntry returns an entry's objects by way of its manifest.
func decodeEntry(v *schema.Validator, e entry) (objects, error) {
	docs, err := documents(e.manifest())
	if err != nil {
		return objects{}, err
	}
	var o objects
	for _, doc := range docs {
		object, err := decode(v, doc)
		if err != nil {
			return objects{}, err
		}
		switch object := object.(type) {
		case *gwv1.HTTPRoute:
			o.route = object
		case *corev1.Service:
			o.service = object
		case *discoveryv1.EndpointSlice:
			o.slice = object
		}
	}
	return o, nil
}

// as returns copies of the objects in the form that another entry's would have.
// Decoding tens of thousands of manifests takes minutes, and is not what is
// measured.
func (o objects) as(e entry) objects {
	name := e.name()
	route := o.route.DeepCopy()
	route.Name = name
	route.Spec.Hostnames[0] = gwv1.Hostname(e.host())
	rule := &route.Spec.Rules[0]
	rule.BackendRefs[0].Name = gwv1.ObjectName(name)
	rule.Filters[0].ResponseHeaderModifier.Set[0].Value = strconv.Itoa(e.version)

	service := o.service.DeepCopy()
	service.Name = name

	slice := o.slice.DeepCopy()
	slice.Name = name
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	port := int32(e.port)
	slice.Ports[0].Port = &port
	return objects{route, service, slice}
}
