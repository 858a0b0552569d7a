package envoy

import (
	"fmt"
	"iter"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Envoy builds a route table anew when one route in it changes. So a large one is in
// several, its shards: a host lives in one of them, by a hash of its name, and hosts with
// wildcards live in all. The proxy computes the same hash of a request's host before it
// looks for routes, and writes it into a header, by which it chooses the shard. What the
// hash of another host is doesn't matter, since only hosts with wildcards can serve it.
// Envoy chooses the shard anew when a filter has it choose the route anew, and finds none then,
// since the header is gone: no filter may do that.
//
// Every bit of the hash is whether the host has an odd number of certain characters, which
// is what a regular expression can tell of a text of any length.

// Shards is how many shards a table has.
const Shards = 1 << shardBits

const (
	shardBits = 7
	// shardHeader is one of those that go no further than to the first filter.
	shardHeader = internalHeaders + "gatehouse-shard"
)

// oddBy are the characters that count for each bit. No two digits count for the same bits, and hardly two
// letters do, and the fewer ranges there are, the smaller are the expressions, which Envoy limits:
// found by trying random ones with names of hosts as people have them.
var oddBy = [shardBits]string{"a-dj-q2-57-9", "bchn-u02-4", "b-fk-n4589", "n-ru-x0-25-8", "mq-y235-8", "abi-kt-z128", "h-oxy4-79"}

// bitsOf are the bits that a character changes.
var bitsOf = func() (out [256]uint8) {
	for bit, ranges := range oddBy {
		for c := range chars(ranges) {
			out[c] |= 1 << bit
		}
	}
	return out
}()

// chars yields the characters of a class of a regular expression.
func chars(class string) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		for len(class) > 0 {
			last := class[0]
			if len(class) > 2 && class[1] == '-' {
				last = class[2]
			}
			for c := class[0]; c <= last; c++ {
				if !yield(c) {
					return
				}
			}
			class = class[strings.IndexByte(class, last)+1:]
		}
	}
}

// ShardOf returns the shard that a host lives in, by its name in lower case.
func ShardOf(domain string) uint8 {
	var sum uint8
	for _, c := range []byte(domain) {
		sum ^= bitsOf[c]
	}
	return sum
}

// ShardName is what a shard of a table is called.
func ShardName(table string, shard uint8) string { return fmt.Sprintf("%s/%d", table, shard) }

// Scope leads a proxy from what it computes of a request to a shard.
func Scope(table string, shard uint8) *Resource {
	name := ShardName(table, shard)
	return scope(name, name)
}

// scope leads from a key to the route configuration of a name, which it has too.
func scope(name, key string) *Resource {
	r, err := resource(Scopes, name, &routev3.ScopedRouteConfiguration{
		Name: name, RouteConfigurationName: name,
		Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{{
			Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: key},
		}}},
	})
	if err != nil {
		panic(fmt.Sprintf("envoy: scope %q: %v", name, err)) // names are ours
	}
	return r.Awaiting(name)
}

// findRoutes says where a connection manager has its routes from, and returns what must be
// known of a request before.
func findRoutes(m *hcmv3.HttpConnectionManager, l *ir.Listener, c *ir.Chain) []*mutationv3.HeaderMutation {
	switch {
	case c.OnDemand:
		return findByKey(m, chainName(l, c), serverNameKey(l.Name, "%REQUESTED_SERVER_NAME%"))
	case c.Sharded:
		return findByKey(m, c.Table, c.Table+"/%CEL("+shardExpression+")%")
	default:
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: c.Table}}
		return nil
	}
}

// findByKey has a connection manager find its routes by the scope whose key a format gives for a request.
func findByKey(m *hcmv3.HttpConnectionManager, name, format string) []*mutationv3.HeaderMutation {
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_ScopedRoutes{ScopedRoutes: &hcmv3.ScopedRoutes{
		Name: name,
		ScopeKeyBuilder: &hcmv3.ScopedRoutes_ScopeKeyBuilder{Fragments: []*hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder{{
			Type: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_{
				HeaderValueExtractor: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor{
					Name:        shardHeader,
					ExtractType: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Index{},
				},
			},
		}}},
		RdsConfigSource: ads(),
		ConfigSpecifier: &hcmv3.ScopedRoutes_ScopedRds{ScopedRds: &hcmv3.ScopedRds{ScopedRdsConfigSource: ads()}},
	}}
	return []*mutationv3.HeaderMutation{{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: shardHeader, Value: format},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}}}
}

// shardExpression is ShardOf in CEL, for a host in any case and with its port.
var shardExpression = func() string {
	terms := make([]string, shardBits)
	for bit, ranges := range oddBy {
		odd := "[" + ranges + strings.ToUpper(strings.TrimRight(ranges, "0123456789-")) + "]"
		even := "[" + theOthers(ranges) + "]*"
		terms[bit] = fmt.Sprintf("(request.host.matches('^(?:%s%s%s%s)*%s(?::.*)?$') ? 0 : %d)", even, odd, even, odd, even, 1<<bit)
	}
	return strings.Join(terms, " + ")
}()

// theOthers are the characters of hosts, in any case, that are not in a class.
func theOthers(class string) string {
	var in [256]bool
	for c := range chars(class) {
		in[c] = true
		in[strings.ToUpper(string(c))[0]] = true
	}
	var out strings.Builder
	for _, alphabet := range []string{"a-z", "A-Z", "0-9"} {
		for first := alphabet[0]; first <= alphabet[2]; first++ {
			last := first
			for !in[first] && last < alphabet[2] && !in[last+1] {
				last++
			}
			if !in[first] {
				fmt.Fprintf(&out, "%c-%c", first, last)
			}
			first = last
		}
	}
	return out.String() + "_.-"
}
