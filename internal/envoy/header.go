package envoy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// setRequestHeaders puts changes to requests onto a Route or a ClusterWeight.
func setRequestHeaders[T *routev3.Route | *routev3.WeightedCluster_ClusterWeight](to T, c *ir.HeaderChanges) error {
	add, remove, err := headerChanges(c)
	switch to := any(to).(type) {
	case *routev3.Route:
		to.RequestHeadersToAdd, to.RequestHeadersToRemove = add, remove
	case *routev3.WeightedCluster_ClusterWeight:
		to.RequestHeadersToAdd, to.RequestHeadersToRemove = add, remove
	}
	return err
}

// setResponseHeaders puts changes to answers onto a Route or a ClusterWeight.
func setResponseHeaders[T *routev3.Route | *routev3.WeightedCluster_ClusterWeight](to T, c *ir.HeaderChanges) error {
	add, remove, err := headerChanges(c)
	switch to := any(to).(type) {
	case *routev3.Route:
		to.ResponseHeadersToAdd, to.ResponseHeadersToRemove = add, remove
	case *routev3.WeightedCluster_ClusterWeight:
		to.ResponseHeadersToAdd, to.ResponseHeadersToRemove = add, remove
	}
	return err
}

// headerChanges returns changes in Envoy's terms. Envoy applies them in the
// order remove, overwrite, append: the order of the IR.
func headerChanges(c *ir.HeaderChanges) (add []*corev3.HeaderValueOption, remove []string, err error) {
	if c == nil {
		return nil, nil, nil
	}
	add = make([]*corev3.HeaderValueOption, 0, len(c.Set)+len(c.Add))
	for _, h := range c.Set {
		if isHost(h.Name) {
			continue // a rewrite to Envoy: see hostname
		}
		o, err := headerOption(h, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
		if err != nil {
			return nil, nil, err
		}
		add = append(add, o)
	}
	for _, h := range c.Add {
		o, err := headerOption(h, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
		if err != nil {
			return nil, nil, err
		}
		add = append(add, o)
	}
	for _, name := range c.Remove {
		if err := checkChange(name); err != nil {
			return nil, nil, err
		}
		remove = append(remove, name)
	}
	return add, remove, nil
}

func headerOption(h ir.Header, action corev3.HeaderValueOption_HeaderAppendAction) (*corev3.HeaderValueOption, error) {
	if err := checkChange(h.Name); err != nil {
		return nil, err
	}
	if hasPrefixFold(h.Name, internalHeaders) {
		return nil, fmt.Errorf("header %q would be an order to Envoy: use a name without the prefix %s", h.Name, internalHeaders)
	}
	if err := checkHeaderValue(h.Name, h.Value); err != nil {
		return nil, err
	}
	value := literal(h.Value)
	if h.Template {
		var err error
		if value, err = formatOf(h.Value); err != nil {
			return nil, fmt.Errorf("the value of header %q: %w", h.Name, err)
		}
	}
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: h.Name, Value: value},
		AppendAction: action,
		// Envoy would leave the header out, and one that a client has sent would stay.
		KeepEmptyValue: h.Value == "" || h.Template,
	}, nil
}

// checkChange accepts the name of a header that may be changed.
func checkChange(name string) error {
	if isHost(name) {
		return errors.New("the Host header can only be set, not added to or removed: use a URLRewrite filter with a hostname")
	}
	if ir.IsFraming(name) {
		return fmt.Errorf("header %q belongs to the framing of messages, which is Envoy's: another value would let one message run into the next", name)
	}
	if strings.EqualFold(name, hopHeader) {
		return fmt.Errorf("header %q ends loops: no route may change it", name)
	}
	return checkHeaderName(name)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// literal escapes text for fields that Envoy reads as a format string.
func literal(s string) string { return strings.ReplaceAll(s, "%", "%%") }

func isHost(name string) bool { return strings.EqualFold(name, "host") }

// then returns changes that do what one after the other would do. What the
// second sets or removes is gone from the first, so that Envoy's order of
// removing, overwriting and appending can't bring it back.
func then(first, second *ir.HeaderChanges) *ir.HeaderChanges {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	overruled := func(h ir.Header) bool {
		same := func(name string) bool { return strings.EqualFold(name, h.Name) }
		return slices.ContainsFunc(second.Remove, same) ||
			slices.ContainsFunc(second.Set, func(s ir.Header) bool { return same(s.Name) })
	}
	return &ir.HeaderChanges{
		Set:    append(slices.DeleteFunc(slices.Clone(first.Set), overruled), second.Set...),
		Add:    append(slices.DeleteFunc(slices.Clone(first.Add), overruled), second.Add...),
		Remove: slices.Concat(first.Remove, second.Remove),
	}
}
