package ratelimit

import (
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/google/go-cmp/cmp"
)

// unreadable is a request whose only value is said in bytes, which the library would not write.
func unreadable(t testing.TB, value string) []byte {
	t.Helper()
	const stand = "stand-in"
	raw, err := proto.Marshal(check(desc("a", "3/1h", "before", "x", "client", stand, "after", "y")))
	if err != nil {
		t.Fatal(err)
	}
	if len(value) != len(stand) {
		t.Fatalf("%q is not as long as %q", value, stand)
	}
	for i := 0; i+len(stand) <= len(raw); i++ {
		if string(raw[i:i+len(stand)]) == stand {
			copy(raw[i:], value)
			return raw
		}
	}
	t.Fatal("the request does not have its own value")
	return nil
}

func read(t testing.TB, raw []byte) *ratelimitv3.RateLimitRequest {
	t.Helper()
	out := &ratelimitv3.RateLimitRequest{}
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Whoever sends what is no text is counted like everybody, and apart from others who do.
func TestCodecReadsWhatIsNoText(t *testing.T) {
	values := map[string]bool{}
	for _, value := range []string{"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf7", "abcdef\xe2\x82", "abcdefgh"} {
		r := read(t, unreadable(t, value))
		entries := r.GetDescriptors()[0].GetEntries()
		if n := len(entries); n != 5 || entries[2].GetValue() != "x" || entries[4].GetValue() != "y" {
			t.Fatalf("%q: %v", value, r)
		}
		values[entries[3].GetValue()] = true
		if _, err := readHits(r, nil); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	if len(values) != 4 || !values["abcdefgh"] {
		t.Errorf("the values are %v", values)
	}
}

func FuzzRepair(f *testing.F) {
	for _, value := range []string{"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", "abcdefgh"} {
		f.Add(unreadable(f, value))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := repair(raw)
		if err != nil {
			return
		}
		before, after := &ratelimitv3.RateLimitRequest{}, &ratelimitv3.RateLimitRequest{}
		if proto.Unmarshal(raw, before) != nil { // there is nothing to compare with
			return
		}
		if err := proto.Unmarshal(out, after); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, after, protocmp.Transform()); d != "" {
			t.Error(d)
		}
	})
}
