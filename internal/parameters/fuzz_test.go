package parameters

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// FuzzKept protects a controller that starts from what another version, or somebody else,
// has written into the ConfigMap: what is read can be written, and is the same when it is
// read again.
func FuzzKept(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"ns/a":null}`, `{"ns/a":{"uid":"u"}}`, `{"a":{"uid":"u","settings":{}}}`,
		`{"ns/a":{"uid":"u","settings":{"accessLog":[{"text":"%REQ(A)%\n"}],"client":{"paths":{"mergeSlashes":true}}}}}`,
		`{"ns/a":{"uid":"u","settings":{"accessLog":[{"text":"%NOTHING"}]}}}`, `{"ns/a":{"uid":5}}`,
		`{"ns/a":{"settings":{"tracing":{"openTelemetry":{"host":"h","port":1}}}},"ns/b":{"settings":{"client":{"limits":{"idleTimeout":"1s"}}}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Decode(text)
		if err != nil {
			messagetest.Error(t, err, len(text)+1000)
			return
		}
		for name, k := range all {
			if _, ok := object.ParseName(name.String()); !ok || k == nil || k.Settings == nil {
				t.Fatalf("%q has %+v", name, k)
			}
		}
		written, left, err := Encode(all, MaxKept)
		if err != nil {
			t.Fatal(err)
		}
		if len(written) > MaxKept {
			t.Fatalf("%d bytes are written", len(written))
		}
		for _, name := range left {
			delete(all, name)
		}
		again, err := Decode(written)
		if len(all) == 0 && len(again) == 0 {
			return
		}
		if diff := cmp.Diff(all, again); diff != "" || err != nil {
			t.Fatalf("what is written is read as something else (%v):\n%s", err, diff)
		}
	})
}

// FuzzBootstrap protects every replica from the bootstrap of a GatewayParameters: its check
// ends, whatever it says, and says what is wrong in one line.
func FuzzBootstrap(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"stats_config":{"stats_tags":[{"tag_name":"x","fixed_value":"z"}]}}`, `{"dynamicResources":{},"dynamic_resources":{}}`,
		`{"static_resources":{"clusters":[{"name":"a","connect_timeout":"1s"},{"name":"xds"}],"listeners":null}}`, `{"node":{"id":"x"}}`, `{"node":5}`,
		`{"stats_sinks":[{"name":"x","typed_config":{"@type":"type.googleapis.com/unknown.Type","a":1}}]}`, `{"layered_runtime":{"layers":[{"static_layer":{"a":[[[]]]}}]}}`,
		`{"stats_flush_interval":"soon"}`, `{"a":1,"a":2}`, `[]`, `{"overload_manager":{"actions":[]}}`, `{"\u001b":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return // the API server has JSON alone
		}
		errs := checkSettings(nil, &v1alpha1.Settings{Envoy: &v1alpha1.Envoy{Bootstrap: &apiextensionsv1.JSON{Raw: text}}})
		for _, err := range errs {
			messagetest.Error(t, err, 4096)
		}
		if err := checkBootstrap(text); err != nil {
			messagetest.Error(t, err, messagetest.Most)
		}
	})
}
