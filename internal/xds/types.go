package xds

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// resourceType is all that the conversation about one type of resources depends on.
// The zero values of what it doesn't mention are those of a type that a proxy asks for
// by name, that refers to nothing and that can be removed.
type resourceType struct {
	name string // for people
	url  string // in xDS

	// Subscriptions

	// hasWildcard says that proxies subscribe to all of the type, without names.
	hasWildcard bool
	// clientNames says that the names in subscriptions come from a proxy's clients.
	// One of them can be "*", which Envoy writes as no name at all in its first
	// request.
	clientNames bool
	// startup says that a proxy has its whole configuration only when it has asked
	// for this type and has been answered.
	startup bool

	// Order

	// with is the type whose resources these belong to, name by name: they follow
	// each new version of it at once, whether asked for or not, and go with it.
	with *envoy.Type
	// after is a type that a proxy asks for only when it accepts resources of this
	// one that it has not asked for.
	after *envoy.Type
	// waitsFor is the type of the resources that envoy.Resource.WaitsFor names: what
	// may refer to this type is sent when the proxy has them.
	waitsFor *envoy.Type
	// refers says that resources of the type refer to those of other types: they are
	// sent when what they refer to can be used, and what they may have referred to is
	// removed after the proxy's answer to them.
	refers bool
	// usedBy is a type whose resources use these while it removes or replaces them:
	// a change of it leaves these alone.
	usedBy *envoy.Type

	// Responses

	// shared says that resources have a response together, because a refusal names
	// the resources at fault and Envoy accepts the others. Each resource of the other
	// types has a response of its own, and that tells.
	shared bool
	// atFault is how a refusal begins that names the resources at fault.
	atFault string

	// Removal

	// removedAtOnce says that a removal waits for nothing, and has its place among the
	// additions.
	removedAtOnce bool
	// removal is the place in the order of all other removals, the lowest first.
	removal int
	// empty returns what takes the place of a resource that does not exist, for types
	// of which Envoy ignores a removal. Nil where Envoy can be told that there is
	// none. Only for types that are asked for by name.
	empty func(name string) *envoy.Resource

	// Refusal

	// stays says that Envoy may keep a resource that it refuses, and may not answer
	// any more as long as it does: the last good version is sent again, or else its
	// removal.
	stays bool
	// passing reports whether a refusal with this message may pass by itself: the same
	// version is then tried again.
	passing func(message string) bool
	// substitute returns what takes the place of a part of a resource that is refused,
	// for types whose resources have parts.
	substitute func(part string) *envoy.Part
}

// resourceTypes returns the types that are served, in the order in which additions
// must reach a proxy. An index is an envoy.Type.
func resourceTypes() []resourceType {
	return []resourceType{
		envoy.Clusters: {
			name: envoy.Clusters.String(), url: envoy.Clusters.URL(),
			hasWildcard: true,
			waitsFor:    new(envoy.Secrets),
			shared:      true,
			atFault:     "Error adding/updating cluster(s) ",
			removal:     1, // before the secrets that it would wait for
			stays:       true,
		},
		envoy.Endpoints: {
			name: envoy.Endpoints.String(), url: envoy.Endpoints.URL(),
			with:    new(envoy.Clusters),
			after:   new(envoy.Listeners),
			removal: 2,
			empty:   envoy.EmptyEndpoints,
		},
		envoy.Secrets: {
			name: envoy.Secrets.String(), url: envoy.Secrets.URL(),
			clientNames: true, // by the server name that a client asks for
			removal:     4,
		},
		envoy.Listeners: {
			name: envoy.Listeners.String(), url: envoy.Listeners.URL(),
			hasWildcard: true,
			startup:     true,
			refers:      true,
			shared:      true,
			atFault:     "Error adding/updating listener(s) ",
			// Of one response Envoy does the removals first: so an address can pass
			// from one listener to another.
			removedAtOnce: true,
			passing:       isBindError,
		},
		envoy.Routes: {
			name: envoy.Routes.String(), url: envoy.Routes.URL(),
			refers:     true,
			usedBy:     new(envoy.Listeners), // whose connections drain with the routes as they were
			removal:    3,
			empty:      envoy.EmptyRoutes,
			substitute: unavailable,
		},
	}
}

// typeOf returns the type with an xDS name.
func (s *Server) typeOf(url string) (envoy.Type, bool) {
	i := slices.IndexFunc(s.types, func(t resourceType) bool { return t.url == url })
	return envoy.Type(max(i, 0)), i >= 0 //nolint:gosec // an index of the table
}

// nameOf returns a type's name for people.
func (s *Server) nameOf(t envoy.Type) string { return s.types[t].name }
