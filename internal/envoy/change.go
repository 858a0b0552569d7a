package envoy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// What others may change in resources of ours, patches and extension servers, is a list of fields. All else is as it was, so
// that names, what guards and where requests go are nobody's to change. Listeners have a list of what may not be
// changed instead, see protected.

// mayChange says how a field may change.
type mayChange uint8

const (
	_ mayChange = iota
	freely
	within // by the list of its own message; of a list of messages, none may come or go
	grows  // what is in the list stays, in front of what is added
)

type changeable map[protoreflect.Name]mayChange

// changeables are the fields of each message that may change.
var changeables = func() map[protoreflect.FullName]changeable {
	headers := changeable{"request_headers_to_add": grows, "request_headers_to_remove": grows, "response_headers_to_add": grows, "response_headers_to_remove": grows}
	with := func(more changeable) changeable {
		maps.Copy(more, headers)
		return more
	}
	name := func(m proto.Message) protoreflect.FullName { return m.ProtoReflect().Descriptor().FullName() }
	return map[protoreflect.FullName]changeable{
		name(&routev3.VirtualHost{}): with(changeable{
			"routes": within, "include_request_attempt_count": freely, "include_attempt_count_in_response": freely,
		}),
		name(&routev3.Route{}): with(changeable{"route": within, "decorator": freely}),
		name(&routev3.RouteAction{}): {
			"timeout": freely, "idle_timeout": freely, "retry_policy": within, "hash_policy": freely, "priority": freely,
		},
		name(&routev3.RetryPolicy{}): {
			"retry_on": freely, "num_retries": freely, "per_try_timeout": freely, "per_try_idle_timeout": freely, "retriable_status_codes": freely,
			"host_selection_retry_max_attempts": freely,
		},
		name(&clusterv3.Cluster{}): {
			"connect_timeout": freely, "per_connection_buffer_limit_bytes": freely, "circuit_breakers": within, "outlier_detection": freely,
			"upstream_connection_options": within, "close_connections_on_host_health_failure": freely, "ignore_health_on_host_removal": freely,
			"track_cluster_stats": freely,
		},
		name(&clusterv3.CircuitBreakers{}):           {"thresholds": freely},
		name(&clusterv3.UpstreamConnectionOptions{}): {"tcp_keepalive": freely},
	}
}()

// checkChanges checks what somebody made of a message of ours: nothing but what may be changed has, and into what Envoy takes.
func checkChanges(before, after message) error {
	if err := changesWithin(before.ProtoReflect(), after.ProtoReflect(), ""); err != nil {
		return err
	}
	return after.ValidateAll()
}

// changesWithin is checkChanges of a message at a path.
func changesWithin(before, after protoreflect.Message, path string) error {
	may := changeables[before.Descriptor().FullName()]
	if len(after.GetUnknown()) > 0 {
		return fmt.Errorf("%s has fields that aren't known", cmp.Or(path, "it"))
	}
	fields := before.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if before.Has(f) == after.Has(f) && before.Get(f).Equal(after.Get(f)) {
			continue
		}
		if err := changedField(f, before, after, may[f.Name()], strings.TrimPrefix(path+"."+string(f.Name()), ".")); err != nil {
			return err
		}
	}
	return nil
}

func changedField(f protoreflect.FieldDescriptor, before, after protoreflect.Message, may mayChange, at string) error {
	was, is := before.Get(f), after.Get(f)
	switch {
	case may == freely:
		if err := usableField(f, is, 0); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	case may == grows:
		a, b := was.List(), is.List()
		for i := range a.Len() {
			if i >= b.Len() || !a.Get(i).Equal(b.Get(i)) {
				return fmt.Errorf("%s[%d] can't be changed or removed; add behind what is there", at, i)
			}
		}
		if err := usableField(f, is, a.Len()); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		return nil
	case may == within && f.IsList():
		a, b := was.List(), is.List()
		if a.Len() != b.Len() {
			return fmt.Errorf("%s can't be added or removed", at)
		}
		for i := range a.Len() {
			if err := changesWithin(a.Get(i).Message(), b.Get(i).Message(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case may == within && (before.Has(f) == after.Has(f) || f.ContainingOneof() == nil):
		return changesWithin(was.Message(), is.Message(), at)
	default:
		return fmt.Errorf("%s can't be changed", at)
	}
}

// usableField finds what Envoy would refuse of a value that has changed, beyond the rules of its protos; of a list from an index on.
func usableField(f protoreflect.FieldDescriptor, v protoreflect.Value, from int) error {
	isHeader := f.Name() == "request_headers_to_remove" || f.Name() == "response_headers_to_remove"
	switch {
	case f.IsMap():
		return errors.New("it can't be changed")
	case f.IsList() && (isHeader || f.Message() != nil):
		for i := from; i < v.List().Len(); i++ {
			of := v.List().Get(i)
			if isHeader {
				if err := checkChange(of.String()); err != nil {
					return err
				}
			} else if err := usable(of.Message()); err != nil {
				return err
			}
		}
	case !f.IsList() && f.Message() != nil:
		return usable(v.Message())
	}
	return nil
}

// usable is usableField of a message.
func usable(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return errors.New("it has fields that aren't known")
	}
	switch m := m.Interface().(type) {
	case *anypb.Any:
		return errors.New("what extends Envoy can't be configured")
	case *durationpb.Duration:
		if d := m.AsDuration(); m.CheckValid() != nil || d < 0 || d > longest {
			return fmt.Errorf("duration %v is not between 0 and 100 years", d)
		}
		return nil
	case *matcherv3.RegexMatchAndSubstitute:
		return errors.New("regular expressions can't be used")
	case *corev3.HeaderValueOption:
		return usableHeader(m)
	case *clusterv3.OutlierDetection:
		if most, least := m.GetMaxEjectionTime(), m.GetBaseEjectionTime(); most != nil && most.AsDuration() < cmp.Or(least.AsDuration(), 30*time.Second) {
			return errors.New("max_ejection_time is below base_ejection_time, which is 30s if it isn't set")
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		err = usableField(f, v, 0)
		return err == nil
	})
	return err
}

// usableHeader checks a header that is set: a name that may be changed, and a value that is a format of Envoy's.
func usableHeader(o *corev3.HeaderValueOption) error {
	name, value := o.GetHeader().GetKey(), o.GetHeader().GetValue()
	switch {
	case len(o.GetHeader().GetRawValue()) > 0:
		return fmt.Errorf("header %q: raw_value can't be used", name)
	case o.GetAppend() != nil: //nolint:staticcheck // Envoy has it still, and refuses both
		return fmt.Errorf("header %q: append can't be used; use append_action", name)
	}
	if hasPrefixFold(name, internalHeaders) {
		return fmt.Errorf("header %q would be an order to Envoy: use a name without the prefix %s", name, internalHeaders)
	}
	return cmp.Or(checkChange(name), checkHeaderValue(name, value), CheckFormat(value))
}

// bareHost is a virtual host without what filters are told, which nobody may change and has sums of keys.
func bareHost(vh *routev3.VirtualHost) *routev3.VirtualHost {
	out := proto.CloneOf(vh)
	eachFilterConfig(out, func(_ int, of *map[string]*anypb.Any) { *of = nil })
	return out
}

// dress gives a bare virtual host what the filters of another one are told, with the same routes.
func dress(vh, from *routev3.VirtualHost) {
	var all []map[string]*anypb.Any
	eachFilterConfig(from, func(_ int, of *map[string]*anypb.Any) { all = append(all, *of) })
	eachFilterConfig(vh, func(i int, of *map[string]*anypb.Any) { *of = all[i] })
}

// eachFilterConfig calls do with each map of what filters are told, in a fixed order.
func eachFilterConfig(vh *routev3.VirtualHost, do func(int, *map[string]*anypb.Any)) {
	n := 0
	next := func(of *map[string]*anypb.Any) { do(n, of); n++ }
	next(&vh.TypedPerFilterConfig)
	for _, r := range vh.Routes {
		next(&r.TypedPerFilterConfig)
		for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
			next(&c.TypedPerFilterConfig)
		}
	}
}
