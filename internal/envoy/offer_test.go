package envoy

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// TestChangeableFields protects what may be changed from a field that is misspelt: nobody could change it.
func TestChangeableFields(t *testing.T) {
	for _, m := range []proto.Message{
		&routev3.VirtualHost{}, &routev3.Route{}, &routev3.RouteAction{}, &routev3.RetryPolicy{}, &clusterv3.Cluster{},
		&clusterv3.CircuitBreakers{}, &clusterv3.UpstreamConnectionOptions{},
	} {
		d := m.ProtoReflect().Descriptor()
		if len(changeables[d.FullName()]) == 0 {
			t.Errorf("nothing of %s may be changed", d.FullName())
		}
		for name := range changeables[d.FullName()] {
			if d.Fields().ByName(name) == nil {
				t.Errorf("%s has no field %s", d.FullName(), name)
			}
		}
	}
	if len(changeables) != 7 {
		t.Errorf("%d messages may be changed; look at each of them here", len(changeables))
	}
}

// mutation changes messages at random, those fields that may be changed as often as all others.
type mutation struct{ *rand.Rand }

var texts = []string{
	"", "x", "x-a", "host", "Content-Length", ":path", "x-envoy-a", "a b", "%REQ(x)%", "%NO%", "%", "%%", "%DURATION%", "5xx,reset", "é", "\x01", "(", "xds",
	"%REQ(x)", "%START_TIME(%s%f)%", "%REQ()%", "%RESPONSE_CODE:99999%", "%TRAILER(a?b):5%", "%DYNAMIC_METADATA(a:b)%", "%FILTER_STATE(a:PLAIN)%", "%UPSTREAM_METADATA([\"a\"])%",
	"%QUERY_PARAM(a)%", "%ENVIRONMENT(HOME)%", "%DOWNSTREAM_PEER_CERT_V_START(%Y)%", "%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:ms)%",
}

// change changes one field of a message, or of one within it.
func (m mutation) change(at protoreflect.Message, depth int) {
	fields := at.Descriptor().Fields()
	f := fields.Get(m.IntN(fields.Len()))
	if may := changeables[at.Descriptor().FullName()]; len(may) > 0 && m.IntN(4) > 0 {
		var names []protoreflect.Name
		for name := range may {
			names = append(names, name)
		}
		slices.Sort(names)
		f = fields.ByName(names[m.IntN(len(names))])
	}
	switch {
	case f.IsMap():
		if f.MapValue().Message() == nil {
			return
		}
		at.Mutable(f).Map().Set(protoreflect.ValueOfString("x").MapKey(), at.Mutable(f).Map().NewValue())
	case f.IsList():
		list := at.Mutable(f).List()
		switch n := list.Len(); {
		case n > 0 && f.Message() != nil && m.IntN(2) == 0:
			m.change(list.Get(m.IntN(n)).Message(), depth+1)
		case n > 0 && m.IntN(6) == 0:
			list.Truncate(n - 1)
		case f.Message() != nil:
			v := list.NewElement()
			m.fill(v.Message(), depth+1)
			list.Append(v)
		default:
			list.Append(m.scalar(f))
		}
	case f.Message() != nil:
		if m.IntN(8) == 0 {
			at.Clear(f)
			return
		}
		m.fill(at.Mutable(f).Message(), depth+1)
	default:
		at.Set(f, m.scalar(f))
	}
}

func (m mutation) fill(at protoreflect.Message, depth int) {
	if at.Descriptor().Fields().Len() == 0 || depth > 5 {
		return
	}
	for range 1 + m.IntN(3) {
		m.change(at, depth)
	}
}

func (m mutation) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	n := []int64{0, 1, 2, 5, 100, 101, 503, -1, 1 << 31, 1<<63 - 1}[m.IntN(10)]
	switch f.Kind() { //nolint:exhaustive // messages are elsewhere
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(m.IntN(8) - 1))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("x"))
	default:
		return protoreflect.ValueOfString(texts[m.IntN(len(texts))])
	}
}

// answer has an offer take a random answer: as a message, in JSON, or broken bytes.
func (m mutation) answer(t *testing.T, o *Offer) error {
	t.Helper()
	after := proto.Clone(o.shown)
	for range 1 + m.IntN(2) {
		m.change(after.ProtoReflect(), 0)
	}
	packed, err := anypb.New(after)
	if err != nil {
		return err // not UTF-8
	}
	switch m.IntN(10) {
	case 0:
		packed.Value[m.IntN(len(packed.Value))] ^= byte(1 << m.IntN(8))
		return o.TakePacked(packed)
	case 1, 2, 3:
		text, err := protojson.Marshal(after)
		if err != nil {
			return err
		}
		return o.TakeJSON(text)
	default:
		return o.TakePacked(packed)
	}
}

// TestRandomAnswers protects proxies from extension servers, whatever these answer about virtual hosts and clusters: Envoy takes all
// that the checks let through, and nothing that guards, names or says where requests go has changed.
func TestRandomAnswers(t *testing.T) {
	rule := func(path string, filters ir.Filters) *ir.Rule {
		return &ir.Rule{Match: ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: path}}, Filters: filters, Backends: []ir.WeightedBackend{{Backend: ir.BackendKey{}, Weight: 1}}}
	}
	b := &ir.Backend{Named: "default/a:80", Protocol: ir.HTTP1, Port: 80}
	other := &ir.Backend{Named: "default/b:80", Protocol: ir.H2C, Port: 80, Settings: ir.BackendSettings{ConnectTimeout: time.Second}}
	h := &ir.Host{Domain: "a.test", Filters: &ir.Filters{Access: &ir.Access{}, ResponseHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "x-ours", Value: "1"}}}}, Rules: []*ir.Rule{
		rule("/a", ir.Filters{RequestHeaders: &ir.HeaderChanges{Remove: []string{"x-secret"}}}), rule("/", ir.Filters{CORS: &ir.CORS{}}),
	}}
	h.Rules[0].Backends[0].Backend = b.Key()
	h.Rules[1].Backends = []ir.WeightedBackend{{Backend: b.Key(), Weight: 1}, {Backend: other.Key(), Weight: 2}}
	part, errs := HostPart(h)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var clusters []*Resource
	for _, b := range []*ir.Backend{b, other} {
		r, err := Cluster(b)
		if err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, r)
	}
	m := mutation{rand.New(rand.NewPCG(3, 4))}
	var hosts []*routev3.VirtualHost
	var pools []*clusterv3.Cluster
	whole, err := OfferHost(part)
	if err != nil {
		t.Fatal(err)
	}
	before := whole.whole.(*routev3.VirtualHost)
	if len(before.TypedPerFilterConfig) == 0 && len(before.Routes[1].TypedPerFilterConfig) == 0 {
		t.Fatal("the host has no filters")
	}
	for i := range *patches {
		if i%2 == 0 {
			o, _ := OfferHost(part)
			if m.answer(t, o) != nil || o.Host().Hash == part.Hash {
				continue
			}
			changed, err := OfferHost(o.Host())
			if err != nil {
				t.Fatal(err)
			}
			vh := changed.whole.(*routev3.VirtualHost)
			if why := guardsLess(before, vh); why != "" {
				t.Fatalf("%s: %v", why, vh)
			}
			vh.Domains = []string{fmt.Sprintf("d%d.test", i)}
			hosts = append(hosts, vh)
			continue
		}
		r := clusters[m.IntN(len(clusters))]
		o, err := OfferResource(r)
		if err != nil {
			t.Fatal(err)
		}
		if m.answer(t, o) != nil || o.Resource().Version == r.Version {
			continue
		}
		was, c := decode(t, r, &clusterv3.Cluster{}), decode(t, o.Resource(), &clusterv3.Cluster{})
		if c.Name != was.Name || !proto.Equal(c.TransportSocket, was.TransportSocket) || !proto.Equal(c.EdsClusterConfig, was.EdsClusterConfig) || c.GetType() != was.GetType() {
			t.Fatalf("the cluster is another one: %v", c)
		}
		c.Name, c.EdsClusterConfig = fmt.Sprintf("c%d", i), nil
		c.AltStatName = ""
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.Name}
		pools = append(pools, c)
	}
	t.Logf("of %d answers %d about hosts and %d about clusters could be taken", *patches, len(hosts), len(pools))
	if len(hosts) < *patches/100 || len(pools) < *patches/100 {
		t.Fatal("too few")
	}
	s := plain([]*ir.Host{{Domain: "*"}})
	dir := socketDir(t)
	boot := s.bootstrap(t, filepath.Join(dir, "admin"))
	boot.StaticResources.Clusters = append(boot.StaticResources.Clusters, pools...)
	f := boot.StaticResources.Listeners[0].FilterChains[0].Filters[0]
	manager := &hcmv3.HttpConnectionManager{}
	if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
		t.Fatal(err)
	}
	manager.GetRouteConfig().VirtualHosts = append(manager.GetRouteConfig().VirtualHosts, hosts...)
	if err := f.GetTypedConfig().MarshalFrom(manager); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary(t), "--mode", "validate", "-c", write(t, dir, boot), "--log-level", "error").CombinedOutput()
	if err != nil {
		t.Errorf("Envoy refuses what could be taken: %v: %s", err, out)
	}
}

// guardsLess says what of a host is not as it has to be; empty for nothing.
func guardsLess(before, after *routev3.VirtualHost) string {
	if after.Name != before.Name || !slices.Equal(after.Domains, before.Domains) || len(after.Routes) != len(before.Routes) {
		return "the host is another one"
	}
	if !slices.Equal(guardOfHost(after), guardOfHost(before)) {
		return "the guard is another one"
	}
	for i, r := range before.Routes {
		now := after.Routes[i]
		was, is := proto.CloneOf(r), proto.CloneOf(now)
		a, b := was.GetRoute(), is.GetRoute()
		switch {
		case now.Name != r.Name || !proto.Equal(now.Match, r.Match) || a.GetCluster() != b.GetCluster() || !proto.Equal(a.GetWeightedClusters(), b.GetWeightedClusters()):
			return "requests go elsewhere"
		case len(now.TypedPerFilterConfig) != len(r.TypedPerFilterConfig):
			return "filters are told something else"
		}
		for _, name := range r.RequestHeadersToRemove {
			if !slices.Contains(now.RequestHeadersToRemove, name) {
				return "a header goes on to the backend"
			}
		}
	}
	return ""
}
