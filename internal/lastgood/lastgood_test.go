package lastgood

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

func newKeeper(t *testing.T) (*Keeper, *output.Buffer) {
	t.Helper()
	log := &output.Buffer{}
	return New(Options{
		Gateway: "default/edge", Envoy: "1.40.0", File: filepath.Join(t.TempDir(), "kept"), Log: slog.New(slog.NewTextHandler(log, nil)),
	}), log
}

func set(names ...string) (out []*discoveryv3.Resource) {
	for _, name := range names {
		name, version, _ := strings.Cut(name, "=")
		out = append(out, &discoveryv3.Resource{Name: name, Version: version})
	}
	return out
}

// holds is what the keeper would keep of clusters, sorted.
func (k *Keeper) holds(t *testing.T) string {
	t.Helper()
	s := k.snapshot(time.Now().Add(time.Hour))
	if s == nil {
		return "nothing new"
	}
	var out []string
	for name, r := range s.types[envoy.Clusters.URL()] {
		out = append(out, name+"="+r.GetVersion())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func ask(k *talk, req *discoveryv3.DeltaDiscoveryRequest) {
	req.TypeUrl = envoy.Clusters.URL()
	k.request(req)
}

func answer(k *talk, nonce string, removed []string, names ...string) {
	k.response(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: envoy.Clusters.URL(), Nonce: nonce, Resources: set(names...), RemovedResources: removed})
}

func TestWhatIsKept(t *testing.T) {
	type (
		request  = discoveryv3.DeltaDiscoveryRequest
		versions = map[string]string
	)
	k, _ := newKeeper(t)
	check := func(when, want string) {
		t.Helper()
		if got := k.holds(t); got != want {
			t.Errorf("%s: %q, not %q", when, got, want)
		}
		k.mu.Lock()
		k.wrote = time.Time{}
		k.mu.Unlock()
	}
	a := k.begin()
	ask(a, &request{})
	answer(a, "1", nil, "a=1", "b=1", "c=1")
	check("not acknowledged, not live", "nothing new")
	ask(a, &request{ResponseNonce: "1"})
	check("not live", "nothing new")
	k.Tell(Envoy{1, true})
	check("acknowledged", "a=1 b=1 c=1")
	check("again", "nothing new")
	answer(a, "2", nil, "a=2")
	ask(a, &request{ResponseNonce: "2", ErrorDetail: &rpcstatus.Status{Message: "no"}})
	check("refused", "nothing new")
	answer(a, "3", []string{"b"}, "d=1")
	ask(a, &request{ResponseNonce: "3"})
	check("removed", "a=1 c=1 d=1")
	ask(a, &request{ResourceNamesUnsubscribe: []string{"c"}})
	check("not subscribed", "a=1 d=1")

	// The connection is cut: Envoy has taken one response of which that was not seen.
	answer(a, "4", nil, "a=3")
	answer(a, "5", nil, "e=1")
	b := k.begin()
	ask(b, &request{InitialResourceVersions: versions{"a": "3", "d": "1"}})
	check("connected again", "a=3 d=1")
	answer(a, "6", nil, "f=1")
	ask(a, &request{ResponseNonce: "6"})
	check("a stream of before", "nothing new")

	// Envoy has something that nobody has seen.
	c := k.begin()
	ask(c, &request{InitialResourceVersions: versions{"a": "3", "x": "1"}})
	answer(c, "1", nil, "a=4")
	ask(c, &request{ResponseNonce: "1"})
	check("something is not known", "nothing new")

	// Another Envoy has nothing at first.
	k.Tell(Envoy{2, false})
	d := k.begin()
	ask(d, &request{})
	check("an Envoy that starts", "nothing new")
	answer(d, "1", nil, "g=1")
	ask(d, &request{ResponseNonce: "1"})
	k.Tell(Envoy{2, true})
	check("it is live", "g=1")
}

// Changes that never end are kept nevertheless, and no more often than is said.
func TestBoundedRate(t *testing.T) {
	k, _ := newKeeper(t)
	k.Tell(Envoy{1, true})
	a := k.begin()
	ask(a, &discoveryv3.DeltaDiscoveryRequest{})
	start := time.Now()
	answer(a, "1", nil, "a=1")
	if k.touch(); k.snapshot(start.Add(settledAtMost/2)) != nil {
		t.Error("kept in the middle of a change")
	}
	if k.snapshot(start.Add(settledAtMost+time.Second)) == nil {
		t.Error("not kept while something is without an answer")
	}
	k.touch()
	if k.snapshot(start.Add(settledAtMost+2*time.Second)) != nil {
		t.Error("kept again at once")
	}
}

// said makes the bytes of one side, with frames as Envoy may cut and pad them.
func said(t *testing.T, message proto.Message, client bool) []byte {
	t.Helper()
	var out bytes.Buffer
	if client {
		out.WriteString(http2.ClientPreface)
	}
	f := http2.NewFramer(&out, nil)
	f.AllowIllegalWrites = true
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(f.WriteSettings())
	if client {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, path := range []string{"/opentelemetry.MetricsService/Export", "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"} {
			block.Reset()
			must(e.WriteField(hpack.HeaderField{Name: ":method", Value: "POST"}))
			must(e.WriteField(hpack.HeaderField{Name: ":path", Value: path}))
			stream := uint32(len(path)%2)*2 + 1
			must(f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: stream, BlockFragment: block.Bytes()[:3], PadLength: 7, Priority: http2.PriorityParam{Weight: 3},
			}))
			must(f.WriteContinuation(stream, true, block.Bytes()[3:]))
		}
	}
	raw, err := proto.Marshal(message)
	must(err)
	raw = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...)
	discovery := uint32(len("/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources")%2)*2 + 1
	must(f.WriteData(4-discovery, false, []byte("figures")))
	for part := range slices.Chunk(raw, 4) {
		must(f.WriteDataPadded(discovery, false, part, make([]byte, 3)))
		must(f.WritePing(false, [8]byte{}))
	}
	return out.Bytes()
}

// However the bytes are cut, the same is read from them.
func TestFollowsBytes(t *testing.T) {
	asks := said(t, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Clusters.URL()}, true)
	answers := said(t, &discoveryv3.DeltaDiscoveryResponse{TypeUrl: envoy.Clusters.URL(), Nonce: "1", Resources: set("a=1")}, false)
	for size := 1; size < 60; size++ {
		k, log := newKeeper(t)
		tap := k.Tap(nil)
		for part := range slices.Chunk(asks, size) {
			tap.follow(&tap.requests, part)
		}
		for part := range slices.Chunk(answers, size) {
			tap.follow(&tap.responses, part)
		}
		if tap.talk == nil || len(tap.talk.pending) != 1 || !tap.talk.asked[envoy.Clusters.URL()] || !tap.Answered() {
			t.Fatalf("by %d bytes: %+v\n%s", size, tap.talk, log.String())
		}
	}
}

// Bytes that are something else end in one line of the log, and in nothing that is kept.
func TestFollowsNothingElse(t *testing.T) {
	k, log := newKeeper(t)
	k.Tell(Envoy{1, true})
	tap := k.Tap(nil)
	tap.follow(&tap.requests, said(t, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Clusters.URL()}, true))
	for range 3 {
		tap.follow(&tap.requests, append([]byte{0, 0, 5, byte(http2.FrameHeaders), byte(http2.FlagHeadersEndHeaders), 0, 0, 0, 9}, 0xff, 0xff, 0xff, 0xff, 0xff))
	}
	k.touch()
	if got := k.holds(t); got != "nothing new" {
		t.Error(got)
	}
	if n := strings.Count(log.String(), "can't be read"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

func FuzzTap(f *testing.F) {
	f.Add([]byte(http2.ClientPreface), []byte{0, 0, 1, 0, 8, 0, 0, 0, 1, 200})
	f.Fuzz(func(t *testing.T, asks, answers []byte) {
		k, _ := newKeeper(t)
		tap := k.Tap(nil)
		tap.follow(&tap.requests, asks)
		tap.follow(&tap.responses, answers)
	})
}

func FuzzFile(f *testing.F) {
	k := New(Options{Gateway: "default/edge", Envoy: "1.40.0", Log: slog.New(slog.DiscardHandler)})
	raw, err := k.encode(&state{at: time.Now(), types: map[string]resources{envoy.Clusters.URL(): {"a": set("a=1")[0]}}})
	if err != nil {
		f.Fatal(err)
	}
	if s, err := k.decode(raw); err != nil || len(s.types) != 1 || !slices.Contains(slices.Collect(maps.Keys(s.types[envoy.Clusters.URL()])), "a") {
		f.Fatalf("%+v %v", s, err)
	}
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = k.decode(raw) })
}
