package xds

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// resourceType describes how the resources of one type are served. The zero value is that
// of a type that a proxy asks for by name, that refers to nothing, and that can be removed.
type resourceType struct {
	name string // for people
	url  string // in xDS

	// Subscriptions

	// hasWildcard says that proxies subscribe to all of the type, without names.
	hasWildcard bool
	// clientNames reports whether a name in a subscription comes from a proxy's clients; nil where
	// none does. One of them can be "*", which Envoy writes as no name at all in its first
	// request.
	clientNames func(name string) bool
	// startup says that a proxy has its whole configuration only when it has asked
	// for this type and has been answered.
	startup bool

	// Order

	// with is the type whose resources these belong to, by equal names: they are sent again
	// after each new version of their owner, also unasked, and Envoy drops them with it.
	with *envoy.Type
	// after is a type for which Envoy asks late: resources of this one that Envoy has not
	// asked for are sent only then, since it drops what comes before.
	after *envoy.Type
	// waitsFor is the type of the resources that envoy.Resource.WaitsFor names. What refers
	// to others, or uses these, is sent when the proxy has them.
	waitsFor *envoy.Type
	// refers says that resources of the type refer to those of other types. They are sent
	// when these can be used, and a removal of others waits for the answer to them.
	refers bool
	// usedBy is a type whose resources use these, also while Envoy replaces or removes them.
	// In a plan that changes what uses it, a resource is not emptied. Envoy asks for it only
	// when it has what uses it, and if for all of the type, only once, see askedOnce.
	usedBy *envoy.Type
	// staysUsed reports whether connections that use a resource stay open, whatever happens to what
	// else uses it: then it is removed also in a plan that changes that. Nil for none.
	staysUsed func(name string) bool

	// beside names the extension to which a resource of the type leaves who may pass; empty, or nil, for
	// none. The one may take over from the other, see takeover.go.
	beside func(name string) string

	// Responses

	// shared says that resources have responses together: a refusal names those at fault,
	// and Envoy accepts the others. Otherwise each has a response of its own.
	shared bool
	// sharedTaken is from what number on resources that are not shared have responses
	// together nevertheless, if a proxy of the Gateway has accepted them before: one that
	// starts gets thousands, and would read and answer each. Should it refuse one of them,
	// all of the response are sent again, each alone. Zero is never.
	sharedTaken int
	// atFault is the beginning of a refusal that names the resources at fault.
	atFault string

	// Removal

	// removedAtOnce says that a removal waits for no answer, and is in the same response as
	// additions.
	removedAtOnce bool
	// removalOrder is the place in the order of all other removals, the lowest first.
	removalOrder int
	// empty returns what replaces a resource that does not exist, for types of which Envoy
	// ignores a removal. Nil where Envoy can be told that there is none. Only for types that
	// are asked for by name.
	empty func(name string) *envoy.Resource

	// Refusal

	// stays says that Envoy may keep a resource that it refuses among those that warm, and
	// may not answer for the type as long as it does. The last good version replaces it, or
	// its removal does.
	stays bool
	// passing reports whether a refusal with this message may pass: the same version is then
	// sent again.
	passing func(message string) bool
	// closed returns what replaces a refused resource of which no version from before may stand
	// in. Nil where nothing does, and the resource is taken away.
	closed func(name string) *envoy.Resource
	// substitute returns what replaces a refused part of a resource, for types that have parts.
	substitute func(part string) *envoy.Part
}

// askedOnce reports whether a proxy asks for all of the type when it first has something that
// uses it, and never again. What uses more of it later does not wait for that, so it is
// sent before. And a proxy forgets all of it when nothing uses it any longer, without a word,
// so all is sent once more after each change of what uses it.
func (y *resourceType) askedOnce() bool { return y.hasWildcard && y.usedBy != nil }

// resourceTypes returns the types that are served, in the order in which additions
// must reach a proxy. An index is an envoy.Type.
func resourceTypes() []resourceType {
	return []resourceType{
		envoy.Clusters: {
			name: envoy.Clusters.String(), url: envoy.Clusters.URL(),
			hasWildcard:  true,
			waitsFor:     new(envoy.Secrets),
			shared:       true,
			atFault:      "Error adding/updating cluster(s) ",
			removalOrder: 1, // before the secrets that it would wait for
			stays:        true,
		},
		envoy.Endpoints: {
			name: envoy.Endpoints.String(), url: envoy.Endpoints.URL(),
			with:         new(envoy.Clusters),
			after:        new(envoy.Listeners),
			sharedTaken:  64,
			removalOrder: 2,
			empty:        envoy.EmptyEndpoints,
		},
		envoy.Secrets: {
			name: envoy.Secrets.String(), url: envoy.Secrets.URL(),
			clientNames:  envoy.IsServerName,
			removalOrder: 5,
			closed:       envoy.NobodysAuthorities, // of secrets, authorities alone have a guard
		},
		envoy.Extensions: {
			name: envoy.Extensions.String(), url: envoy.Extensions.URL(),
			refers:       true,
			removalOrder: 6,
			empty:        envoy.EmptyExtension,
			closed:       envoy.EmptyExtension, // of extensions, who may pass by a table alone has a guard
		},
		envoy.Listeners: {
			name: envoy.Listeners.String(), url: envoy.Listeners.URL(),
			hasWildcard: true,
			startup:     true,
			refers:      true,
			shared:      true,
			atFault:     "Error adding/updating listener(s) ",
			// Envoy does the removals of a response first: so an address can pass from one
			// listener to another.
			removedAtOnce: true,
			passing:       isBindError,
		},
		envoy.Scopes: {
			name: envoy.Scopes.String(), url: envoy.Scopes.URL(),
			hasWildcard:  true,
			waitsFor:     new(envoy.Routes),
			refers:       true,
			usedBy:       new(envoy.Listeners), // whose connections drain with the scopes as they were
			staysUsed:    envoy.IsHostScope,
			shared:       true,
			atFault:      "Error adding/updating scoped route(s) ",
			removalOrder: 3, // before the routes that they lead to
		},
		envoy.Routes: {
			name: envoy.Routes.String(), url: envoy.Routes.URL(),
			refers:       true,
			usedBy:       new(envoy.Listeners), // whose connections drain with the routes as they were
			beside:       envoy.AccessBeside,
			removalOrder: 4,
			empty:        envoy.EmptyRoutes,
			substitute:   unavailable,
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
