package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// marker is a value of Secrets that no error may repeat.
const marker = "c2VjcmV0LW1hcmtlcg"

// FuzzDecode protects all that is behind the validation: an object comes out whole and
// typed, or an error says which field is wrong; and an object that came out comes out
// again as it is.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		route,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"type":"kubernetes.io/tls","data":{"tls.crt":"` + marker + `=","tls.key":5}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n"},"stringData":{"a":"` + marker + `"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","labels":{"a":"b"}},"spec":{"ports":[{"port":80,"targetPort":"http","appProtocol":"kubernetes.io/h2c"}]}}`,
		`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"e"},"addressType":"IPv4","endpoints":[{"addresses":["127.0.0.1"]}],"ports":[{"port":80}]}`,
		`{"apiVersion":"gateway.networking.k8s.io/v1beta1","kind":"Gateway","metadata":{"name":"g"},"spec":{"gatewayClassName":"c","listeners":[{"name":"l","port":80,"protocol":"HTTP"}]}}`,
		`{"apiVersion":"gateway.networking.k8s.io/v1alpha2","kind":"TCPRoute","metadata":{"name":"g"},"spec":{"rules":[{"backendRefs":[{"name":"b","port":1}]}]}}`,
		`{"apiVersion":"gateway.networking.k8s.io/v1beta1","kind":"ReferenceGrant","metadata":{"name":"g"},"spec":{"from":[],"to":[{"kind":"\u0000"}]}}`,
		`{"apiVersion":"gatehouse.dev/v1alpha1","kind":"GatewayParameters","metadata":{"name":"p"},"spec":{"patches":[{"target":{"kind":"Service"},"value":{"a":[1.5,null]}}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","annotations":{"\u001b":1}},"binaryData":{"a":"!"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"N","namespace":"x"}}`, `{"apiVersion":5,"kind":null,"metadata":[]}`,
		`{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute\u001b","metadata":{"name":"r"}}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	validators := map[bool]*Validator{}
	for _, experimental := range []bool{true, false} {
		v, err := New(kind.All, experimental)
		if err != nil {
			f.Fatal(err)
		}
		validators[experimental] = v
	}
	f.Fuzz(func(t *testing.T, text []byte, experimental bool) {
		var content map[string]any
		if utiljson.Unmarshal(text, &content) != nil || content == nil {
			return
		}
		v := validators[experimental]
		id, err := v.Identify(content)
		if err != nil {
			checkIdentity(t, err, len(text))
			return
		}
		if id.row.Custom {
			delete(content, "status")
			sameFast(t, v, id, content)
		}
		decoded, errs := v.Decode(id, content)
		if (decoded == nil) == (len(errs) == 0) {
			t.Fatalf("object %v and faults %v", decoded, errs)
		}
		for _, e := range errs {
			checkFault(t, id.Key, e, len(text))
		}
		if decoded == nil {
			_ = v.StandIn(id, content)
		} else {
			// What is left out for being empty may have a default, so that the second is what stays.
			decodesAgain(t, v, id.Key, decodedAgain(t, v, id.Key, decoded))
		}
	})
}

func checkIdentity(t *testing.T, err error, size int) {
	t.Helper()
	if errors.Is(err, ErrForeign) {
		return
	}
	var unknown *UnknownKindError
	var invalid *field.Error
	switch {
	case errors.As(err, &unknown):
		if unknown.Field == "" {
			t.Fatalf("%v names no field", err)
		}
	case errors.As(err, &invalid):
		if invalid.Field == "" || invalid.Field == "<nil>" {
			t.Fatalf("%v names no field", err)
		}
	default:
		t.Fatalf("an error of another type: %v", err)
	}
	messagetest.Error(t, err, 6*size+1000)
}

func checkFault(t *testing.T, key object.Key, e *field.Error, size int) {
	t.Helper()
	messagetest.Check(t, Message(e), 6*size+4000)
	if e.Type == field.ErrorTypeInternal {
		t.Fatalf("%s: %v", key, e)
	}
	if key.Kind == kind.Secret && strings.Contains(e.Error(), marker) {
		t.Fatalf("the error repeats the Secret's value: %v", e)
	}
}

// decodesAgain checks that what is decoded again is the same.
func decodesAgain(t *testing.T, v *Validator, key object.Key, o source.Object) {
	t.Helper()
	if again := decodedAgain(t, v, key, o); !equality.Semantic.DeepEqual(o, again) {
		t.Fatalf("decoded again, the object is another:\n%+v\n%+v", o, again)
	}
}

// decodedAgain decodes what was decoded.
func decodedAgain(t *testing.T, v *Validator, key object.Key, o source.Object) source.Object {
	t.Helper()
	if source.KeyOf(o) != key {
		t.Fatalf("%s is decoded as %s", key, source.KeyOf(o))
	}
	if d := kind.All.OfObject(o); d == nil || d.Kind != key.Kind {
		t.Fatalf("%s is decoded as %v", key, reflect.TypeOf(o))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	// As it comes from an API server: through JSON.
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	content = nil
	if err := utiljson.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	id, err := v.Identify(content)
	if err != nil || id.Key != key {
		t.Fatalf("the object of %s is that of %s: %v", key, id.Key, err)
	}
	again, errs := v.Decode(id, content)
	if len(errs) > 0 {
		t.Fatalf("what was accepted is refused: %v\n%s", errs.ToAggregate(), text)
	}
	return again
}
