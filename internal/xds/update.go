package xds

import "github.com/gatehouse-dev/gatehouse/internal/envoy"

// Ref names a resource of one Gateway.
type Ref struct {
	Type envoy.Type
	Name string
}

// String returns type/name.
func (r Ref) String() string { return r.Type.String() + "/" + r.Name }

// Update is what one commit changes for the proxies of one Gateway. The first
// Update of a Gateway is its whole configuration: until it comes nothing is
// answered, since "not loaded yet" must not look like "empty".
type Update struct {
	Gateway string // namespace/name
	Set     []*envoy.Resource
	Remove  []Ref
	Gone    bool // the Gateway no longer exists; its proxies lose everything
}
