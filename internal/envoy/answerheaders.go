package envoy

import (
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// answerHeadersSlot changes the headers of answers, whoever gives them. Fields of virtual hosts would not do
// for answers of other filters, such as a refusal.
var answerHeadersSlot = trafficSlot{
	name: "gatehouse.answer-headers",
	setting: func(t *ir.Traffic) any {
		return [...]any{t.Headers, t.StrictTransportSecurity, t.SecurityHeaders}
	},
	filters: []trafficFilter{{
		name: "headers",
		make: func(t *ir.Traffic) (message, error) {
			var all []*mutationv3.HeaderMutation
			if t.Headers != nil {
				for _, name := range t.Headers.Remove {
					all = append(all, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}})
				}
			}
			for _, o := range answerHeaders(t) {
				all = append(all, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: o}})
			}
			if len(all) == 0 {
				return nil, nil //nolint:nilnil // nothing is changed
			}
			return &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{ResponseMutations: all}}, nil
		},
	}},
}

// answerHeaders are the headers that answers get. The presets have the last word over what a route says of the
// same headers: they may be another policy's, that routes have to keep to.
func answerHeaders(t *ir.Traffic) (out []*corev3.HeaderValueOption) {
	add := func(headers []ir.Header, action corev3.HeaderValueOption_HeaderAppendAction) {
		for _, h := range headers {
			out = append(out, &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: h.Name, Value: literal(h.Value)}, AppendAction: action})
		}
	}
	var preset []ir.Header
	if t.SecurityHeaders != nil {
		preset = t.SecurityHeaders.Set
	}
	if h := t.Headers; h != nil {
		others := func(headers []ir.Header) []ir.Header {
			return slices.DeleteFunc(slices.Clone(headers), func(h ir.Header) bool {
				return slices.ContainsFunc(preset, func(p ir.Header) bool { return p.Name == h.Name })
			})
		}
		add(others(h.Set), corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
		add(others(h.SetIfAbsent), corev3.HeaderValueOption_ADD_IF_ABSENT)
		add(others(h.Add), corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	}
	add(preset, corev3.HeaderValueOption_ADD_IF_ABSENT)
	if v := t.StrictTransportSecurity; v != nil && *v != "" {
		add([]ir.Header{{Name: "strict-transport-security", Value: *v}}, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	}
	return out
}
