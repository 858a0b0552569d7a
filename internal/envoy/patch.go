package envoy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// PatchTypes are what patches are for, by the names of types of patches.
var PatchTypes = map[string]Type{"Listener": Listeners, "Cluster": Clusters, "VirtualHost": Routes}

// Patch changes listeners, clusters or virtual hosts, by operations of RFC 6902 on what Envoy's documentation writes as JSON, with fields in its own
// spelling, such as filter_chains.
type Patch struct {
	// Type is that of what is changed; Routes for virtual hosts.
	Type Type
	// Name is exact, or up to a * at its end. Virtual hosts have their domains for names, and * is for all of them.
	Name string
	// Operations are a list in JSON, within the bounds of CheckPatch.
	Operations []byte
}

// These bound what patches cost whoever applies them: an operation that copies a thing into itself doubles it.
const (
	maxPatchBytes      = 32 << 10
	maxPatchOperations = 64
	maxPatchCopies     = 16
	maxPatched         = 4 << 20 // of a listener in JSON, after each operation
	maxPatchError      = 512
)

// CheckPatch finds what is wrong with a patch, whatever it is applied to.
func CheckPatch(p Patch) error {
	switch {
	case p.Name == "":
		return errors.New("name is empty; write that of a resource as 'gatehouse translate -o xds' prints it, or * for all")
	case p.Type == Routes && p.Name != "*" && strings.Contains(strings.TrimPrefix(p.Name, "*."), "*"):
		return errors.New("name is no domain of a virtual host, such as www.example.com or *.example.com, nor * for all")
	case p.Type != Routes && strings.Contains(strings.TrimSuffix(p.Name, "*"), "*"):
		return errors.New("name has a * that is not at its end")
	case len(p.Operations) > maxPatchBytes:
		return fmt.Errorf("operations have %d bytes, over the limit of %d; shorten them", len(p.Operations), maxPatchBytes)
	}
	return checkOperations(p.Operations)
}

// checkOperations is CheckPatch of operations, but for their length.
func checkOperations(text []byte) error {
	if len(text) > maxPatched {
		return fmt.Errorf("operations have %d bytes, over the limit of %d", len(text), maxPatched)
	}
	operations, err := decoded(text)
	if err != nil {
		return err
	}
	if n := len(operations); n == 0 || n > maxPatchOperations {
		return fmt.Errorf("there are %d operations; write 1 to %d", n, maxPatchOperations)
	}
	copies := 0
	for i, o := range operations {
		path, err := o.Path()
		if err != nil {
			return fmt.Errorf("operations[%d]: path: %w", i, err)
		}
		switch o.Kind() {
		case "add", "replace", "test":
			if _, err := o.ValueInterface(); err != nil {
				return fmt.Errorf("operations[%d]: value: %w", i, err)
			}
		case "remove":
		case "move", "copy":
			if _, err := o.From(); err != nil {
				return fmt.Errorf("operations[%d]: from: %w", i, err)
			}
			copies++
		default:
			return fmt.Errorf("operations[%d]: op is %q; write add, remove, replace, move, copy or test", i, o.Kind())
		}
		if path != "" && path[0] != '/' {
			return fmt.Errorf("operations[%d]: path is %q; it begins with /", i, path)
		}
	}
	if copies > maxPatchCopies {
		return fmt.Errorf("%d operations move or copy, over the limit of %d", copies, maxPatchCopies)
	}
	return nil
}

func decoded(operations []byte) (list jsonpatch.Patch, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's, about what others have written
			err = fmt.Errorf("operations can't be read: %v", r)
		}
	}()
	if list, err = jsonpatch.DecodePatch(operations); err != nil {
		return nil, errors.New("operations are no list of RFC 6902, such as [{op: replace, path: /per_connection_buffer_limit_bytes, value: 65536}]")
	}
	return list, nil
}

// Fits reports whether a patch is for a resource, or a virtual host.
func (p Patch) Fits(of Type, name string) bool {
	if p.Type != of || p.Name == name {
		return p.Type == of
	}
	prefix, any := strings.CutSuffix(p.Name, "*")
	return any && (of != Routes || prefix == "") && strings.HasPrefix(name, prefix)
}

// routerLast moves HTTP filters that a patch has put at the end, as JSON patches can without a count, before the router, behind
// which no filter is.
func routerLast(l *listenerv3.Listener) {
	for _, c := range l.GetFilterChains() {
		for _, f := range c.GetFilters() {
			m := &hcmv3.HttpConnectionManager{}
			if f.GetTypedConfig().UnmarshalTo(m) != nil {
				continue
			}
			all := m.GetHttpFilters()
			i := slices.IndexFunc(all, func(f *hcmv3.HttpFilter) bool { return f.GetName() == routerFilter })
			if i < 0 || i == len(all)-1 {
				continue
			}
			m.HttpFilters = append(slices.Delete(slices.Clone(all), i, i+1), all[i])
			if packed, err := pack(m); err == nil {
				f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
			}
		}
	}
}

// applied applies operations, one after the other, since only what has been applied can be measured.
func applied(text, patch []byte) (out []byte, err error) {
	operations, err := decoded(patch)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("operations can't be applied: %v", r)
		}
	}()
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxPatched
	for i := range operations {
		if text, err = operations[i:i+1].ApplyWithOptions(text, options); err != nil {
			return nil, fmt.Errorf("operations[%d]: %w", i, inShort(err))
		}
		if len(text) > maxPatched {
			return nil, fmt.Errorf("operations[%d]: it has %d bytes then, over the limit of %d", i, len(text), maxPatched)
		}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || !json.Valid(text) {
		return nil, errors.New("what is left is no object")
	}
	return text, nil
}

// inShort is an error as a condition has it: short, and the same each time. The library varies a space on purpose.
func inShort(err error) error {
	text := position.ReplaceAllString(strings.ReplaceAll(err.Error(), "\u00a0", " "), "")
	if len(text) > maxPatchError {
		text = text[:maxPatchError] + "…"
	}
	return errors.New(strings.ToValidUTF8(text, "�"))
}

// maxPackedDepth bounds how deep extensions may be within extensions.
const maxPackedDepth = 16

// validPacked checks the configurations of extensions, which ValidateAll passes over.
func validPacked(m proto.Message) error { return validPackedTo(m, maxPackedDepth) }

func validPackedTo(m proto.Message, depth int) (err error) {
	if depth == 0 {
		return fmt.Errorf("extensions are more than %d deep in each other", maxPackedDepth)
	}
	eachPacked(m.ProtoReflect(), func(a *anypb.Any) {
		inner, failed := a.UnmarshalNew()
		if failed == nil {
			if v, ok := inner.(message); ok {
				failed = v.ValidateAll()
			}
			failed = errors.Join(failed, validPackedTo(inner, depth-1))
		}
		if err == nil {
			err = failed
		}
	})
	return err
}

// eachPacked calls do with each Any within a message, at any depth but within others.
func eachPacked(m protoreflect.Message, do func(*anypb.Any)) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		do(a)
		return
	}
	within := func(v protoreflect.Value) { eachPacked(v.Message(), do) }
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { within(v); return true })
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				within(v.List().Get(i))
			}
		default:
			within(v)
		}
		return true
	})
}

// What a patch can't change, since it says where a Gateway listens, who clients are, and what they meet on their way.
var (
	// Of a listener all but these.
	patchableListener = []protoreflect.Name{
		"filter_chains", "access_log", "per_connection_buffer_limit_bytes", "connection_balance_config", "tcp_backlog_size", "tcp_fast_open_queue_length",
		"socket_options", "max_connections_to_accept_per_socket_event", "enable_mptcp", "drain_type", "stat_prefix",
	}
	protectedChain = []protoreflect.Name{"name", "filter_chain_match", "transport_socket", "metadata"}
	protectedHCM   = []protoreflect.Name{
		"route_config", "rds", "scoped_routes", "use_remote_address", "xff_num_trusted_hops", "skip_xff_append", "original_ip_detection_extensions",
		"early_header_mutation_extensions", "internal_address_config", "forward_client_cert_details", "set_current_client_cert_details",
		"normalize_path", "merge_slashes", "path_with_escaped_slashes_action", "strip_trailing_host_dot", "strip_matching_host_port", "strip_any_host_port",
		"common_http_protocol_options", "http_protocol_options", "http2_protocol_options", "http3_protocol_options", "upgrade_configs", "add_proxy_protocol_connection_state",
		"typed_header_validation_config", "path_normalization_options", "local_reply_config",
	}
)

// protected reports what a patch has changed that it can't. HTTP filters may be added right before the last one, where all
// that may refuse a request has been.
func protected(before, after *listenerv3.Listener) error {
	if f := changed(before, after, fieldsBut(before, patchableListener)); f != "" {
		return fmt.Errorf("a patch can't change %s of a listener", f)
	}
	if !begins(after.GetAccessLog(), before.GetAccessLog()) {
		return errors.New("a patch can't change access_log of a listener but add to its end")
	}
	if len(before.GetFilterChains()) != len(after.GetFilterChains()) {
		return errors.New("a patch can't add or remove filter_chains")
	}
	for i, was := range before.GetFilterChains() {
		now := after.GetFilterChains()[i]
		if f := changed(was, now, protectedChain); f != "" {
			return fmt.Errorf("a patch can't change %s of filter_chains[%d]", f, i)
		}
		if len(was.GetFilters()) != len(now.GetFilters()) {
			return fmt.Errorf("a patch can't add or remove filters of filter_chains[%d]; http_filters can be added", i)
		}
		for j := range was.GetFilters() {
			if err := protectedFilter(was.GetFilters()[j], now.GetFilters()[j]); err != nil {
				return fmt.Errorf("filter_chains[%d].filters[%d]: %w", i, j, err)
			}
		}
	}
	return nil
}

// protectedFilter is protected of a filter of connections.
func protectedFilter(was, now *listenerv3.Filter) error {
	if proto.Equal(was, now) {
		return nil
	}
	before, after := &hcmv3.HttpConnectionManager{}, &hcmv3.HttpConnectionManager{}
	if was.GetName() != now.GetName() || was.GetTypedConfig().UnmarshalTo(before) != nil || now.GetTypedConfig().UnmarshalTo(after) != nil {
		return errors.New("a patch can't change it: only those that manage connections of HTTP can be changed")
	}
	if f := changed(before, after, protectedHCM); f != "" {
		return fmt.Errorf("a patch can't change %s", f)
	}
	if !begins(after.GetAccessLog(), before.GetAccessLog()) { // some of it counts requests for the figures
		return errors.New("a patch can't change access_log but add to its end")
	}
	ours, all := before.GetHttpFilters(), after.GetHttpFilters()
	if len(ours) == 0 || len(all) < len(ours) {
		return errors.New("a patch can't remove http_filters")
	}
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.GetName()] {
			return fmt.Errorf("http_filters has two of the name %q: give the one that is added another name", f.GetName())
		}
		seen[f.GetName()] = true
		if !isHTTPFilter(f) {
			return fmt.Errorf("http_filters has %q, which is no filter of HTTP: its type is %q", f.GetName(), f.GetTypedConfig().GetTypeUrl())
		}
	}
	last := len(ours) - 1
	for i := range last {
		if !proto.Equal(ours[i], all[i]) {
			return fmt.Errorf("a patch can't change http_filters[%d], nor add any before http_filters[%d], in front of which all that may refuse a request has been", i, last)
		}
	}
	if !proto.Equal(ours[last], all[len(all)-1]) {
		return errors.New("a patch can't change the last of http_filters, nor add any behind it")
	}
	return nil
}

// isHTTPFilter reports whether a filter may be one of HTTP, by the type of its configuration: Envoy finds it by that.
func isHTTPFilter(f *hcmv3.HttpFilter) bool {
	name := f.GetTypedConfig().MessageName()
	return f.GetTypedConfig() == nil || strings.HasPrefix(string(name), "envoy.extensions.filters.http.") || name == "envoy.extensions.common.matching.v3.ExtensionWithMatcher" ||
		name == "xds.type.v3.TypedStruct"
}

// begins reports whether all begin with some.
func begins(all, some []*accesslogv3.AccessLog) bool {
	return len(all) >= len(some) && slices.EqualFunc(all[:len(some)], some, func(a, b *accesslogv3.AccessLog) bool { return proto.Equal(a, b) })
}

// fieldsBut are the fields of a message but for some.
func fieldsBut(m proto.Message, some []protoreflect.Name) (names []protoreflect.Name) {
	all := m.ProtoReflect().Descriptor().Fields()
	for i := range all.Len() {
		if name := all.Get(i).Name(); !slices.Contains(some, name) {
			names = append(names, name)
		}
	}
	return names
}

// changed returns which of some fields differs; empty for none.
func changed(a, b proto.Message, fields []protoreflect.Name) protoreflect.Name {
	x, y := a.ProtoReflect(), b.ProtoReflect()
	for _, name := range fields {
		f := x.Descriptor().Fields().ByName(name)
		if f != nil && !x.Get(f).Equal(y.Get(f)) {
			return name
		}
	}
	return ""
}
