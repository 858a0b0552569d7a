package envoy

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	jsonparserv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/content_parsers/json/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jsonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	ssev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/sse_to_metadata/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// usageSlot is the place in the chain for the filters that read in answers what these have cost,
// and the name under which they write it down.
const usageSlot = "gatehouse.usage"

func usageKey(path []string) string { return strings.Join(path, ".") }

// usages are the paths that the limits of a level read in answers, sorted.
func usages(l *ir.RateLimits) (paths [][]string) {
	if l == nil {
		return nil
	}
	for i := range l.Counted {
		if g := l.Counted[i].Global; g != nil && len(g.Tokens) > 0 {
			paths = append(paths, g.Tokens)
		}
	}
	slices.SortFunc(paths, slices.Compare[[]string])
	return slices.CompactFunc(paths, slices.Equal[[]string])
}

//go:embed usage.lua
var usageSource string

var usageScript = compact(usageSource)

// maxEvent is how long an event of a stream may be that is looked into.
const maxEvent = 1 << 20

// usage reads in answers, of one document or a stream of events, what they have cost.
func usage(paths [][]string) (*anypb.Any, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var parsed []*jsonparserv3.JsonContentParser_RuleConfig
	for _, path := range paths {
		rule := &jsonv3.JsonToMetadata_Rule{OnPresent: &jsonv3.JsonToMetadata_KeyValuePair{
			MetadataNamespace: usageSlot, Key: usageKey(path), Type: jsonv3.JsonToMetadata_NUMBER,
		}}
		for _, name := range path {
			rule.Selectors = append(rule.Selectors, &jsonv3.JsonToMetadata_Selector{Selector: &jsonv3.JsonToMetadata_Selector_Key{Key: name}})
		}
		parsed = append(parsed, &jsonparserv3.JsonContentParser_RuleConfig{Rule: rule})
	}
	parser, err := pack(&jsonparserv3.JsonContentParser{Rules: parsed})
	if err != nil {
		return nil, err
	}
	out := &filterchainv3.FilterChainConfigPerRoute{FilterChain: &filterchainv3.FilterChain{}}
	for _, f := range []struct {
		name string
		m    message
	}{
		// What an answer has cost can be read in plain answers only.
		{"plain", &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{RequestMutations: []*mutationrulesv3.HeaderMutation{{
			Action: &mutationrulesv3.HeaderMutation_Remove{Remove: "accept-encoding"},
		}}}}},
		{"document", usageReader(paths)},
		{"events", &ssev3.SseToMetadata{ResponseRules: &ssev3.SseToMetadata_ProcessingRules{
			ContentParser: &corev3.TypedExtensionConfig{Name: "envoy.content_parsers.json", TypedConfig: parser},
			MaxEventSize:  wrapperspb.UInt32(maxEvent),
		}}},
	} {
		config, err := pack(f.m)
		if err != nil {
			return nil, err
		}
		out.FilterChain.Filters = append(out.FilterChain.Filters, &corev3.TypedExtensionConfig{Name: f.name, TypedConfig: config})
	}
	return pack(out)
}

// usageReader reads documents while they pass: a filter of Envoy's that reads them waits for all
// of one, and answers 500 in place of one that is longer than the proxy's buffer.
func usageReader(paths [][]string) *luav3.Lua {
	var b strings.Builder
	fmt.Fprintf(&b, "local namespace, most = %s, %d\nlocal paths = {", luaText(usageSlot), descriptor.MaxLimit)
	for _, path := range paths {
		fmt.Fprintf(&b, "{key = %s", luaText(usageKey(path)))
		for _, name := range path {
			b.WriteString(", " + luaText(name))
		}
		b.WriteString("},")
	}
	b.WriteString("}\n" + usageScript)
	return &luav3.Lua{DefaultSourceCode: inlined(b.String()), ClearRouteCache: wrapperspb.Bool(false)}
}
