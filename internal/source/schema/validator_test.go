package schema

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const route = `{
 "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
 "metadata": {"name": "r", "namespace": "shop", "labels": {"app": "shop"}},
 "spec": {
  "parentRefs": [{"name": "gw"}],
  "hostnames": ["a.example.com"],
  "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/api"}}], "backendRefs": [{"name": "api", "port": 80}]}]
 }}`

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func newValidator(t testing.TB, experimental bool) *Validator {
	t.Helper()
	v, err := New(kind.All, experimental)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func decode(t testing.TB, v *Validator, text string) (source.Object, field.ErrorList) {
	t.Helper()
	content := parse(t, text)
	id, err := v.Identify(content)
	if err != nil {
		t.Fatalf("Identify: %v", err)
	}
	return v.Decode(id, content)
}

func decodeAs[T source.Object](t testing.TB, v *Validator, text string) T {
	t.Helper()
	object, errs := decode(t, v, text)
	if len(errs) > 0 {
		t.Fatalf("Decode: %v", errs.ToAggregate())
	}
	return object.(T)
}

// Every kind's embedded schema compiles, with rules, in every served version.
func TestSchemasCompile(t *testing.T) {
	for _, ch := range []channel{standard, experimental} {
		rows, err := rowsOf(kind.All)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range rows {
			if !k.Custom || (ch == standard && k.Kind.Group() == kind.Experimental) {
				continue
			}
			versions, err := k.definition(ch)
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range versions {
				if !version.Served {
					continue
				}
				if _, err := k.schemaOf(ch, version.Name); err != nil {
					t.Errorf("%s %s %s: %v", ch, k, version.Name, err)
				}
			}
		}
	}
}

func TestDefaultsAreSet(t *testing.T) {
	r := decodeAs[*gatewayv1.HTTPRoute](t, newValidator(t, false), route)
	ref := r.Spec.ParentRefs[0]
	if ref.Group == nil || *ref.Group != "gateway.networking.k8s.io" || ref.Kind == nil || *ref.Kind != "Gateway" {
		t.Errorf("parentRef has no defaults: %+v", ref)
	}
	if w := r.Spec.Rules[0].BackendRefs[0].Weight; w == nil || *w != 1 {
		t.Errorf("backendRef has no default weight: %v", w)
	}
}

func TestOldVersionsBecomeV1(t *testing.T) {
	v := newValidator(t, false)
	grant := decodeAs[*gatewayv1.ReferenceGrant](t, v, `{
		"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "g", "namespace": "b"},
		"spec": {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "a"}], "to": [{"group": "", "kind": "Service"}]}}`)
	if grant.APIVersion != "gateway.networking.k8s.io/v1" || grant.Spec.From[0].Namespace != "a" {
		t.Errorf("got %+v", grant)
	}
	class := decodeAs[*gatewayv1.GatewayClass](t, v, `{
		"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "GatewayClass", "metadata": {"name": "c"},
		"spec": {"controllerName": "gatehouse.dev/controller"}}`)
	if class.APIVersion != "gateway.networking.k8s.io/v1" || len(class.Status.Conditions) != 0 {
		t.Errorf("got %+v", class)
	}
}

func TestExperimentalChannel(t *testing.T) {
	tcp := `{"apiVersion": "gateway.networking.k8s.io/v1alpha2", "kind": "TCPRoute", "metadata": {"name": "t"},
		"spec": {"rules": [{"backendRefs": [{"name": "db", "port": 5432}]}]}}`
	if got := decodeAs[*gatewayv1.TCPRoute](t, newValidator(t, true), tcp); got.APIVersion != "gateway.networking.k8s.io/v1" {
		t.Errorf("apiVersion = %s", got.APIVersion)
	}
	_, err := newValidator(t, false).Identify(parse(t, tcp))
	if unknown := new(UnknownKindError); !errors.As(err, &unknown) || unknown.Field != "apiVersion" {
		t.Errorf("standard channel, v1alpha2: %v", err)
	}

	x := `{"apiVersion": "gateway.networking.x-k8s.io/v1alpha1", "kind": "XBackend", "metadata": {"name": "x"}, "spec": {}}`
	_, err = newValidator(t, false).Identify(parse(t, x))
	if unknown := new(UnknownKindError); !errors.As(err, &unknown) || unknown.Field != "kind" {
		t.Errorf("standard channel, XBackend: %v", err)
	}
}

func TestForeignKinds(t *testing.T) {
	_, err := newValidator(t, false).Identify(parse(t, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}`))
	if !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

func TestCoreKindsAreDefaulted(t *testing.T) {
	v := newValidator(t, false)
	svc := decodeAs[*corev1.Service](t, v, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}`)
	if p := svc.Spec.Ports[0]; p.Protocol != corev1.ProtocolTCP || p.TargetPort.IntVal != 80 || svc.Namespace != "default" {
		t.Errorf("Service: %+v", svc)
	}
	secret := decodeAs[*corev1.Secret](t, v, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"b": "y"}}`)
	if string(secret.Data["a"]) != "x" || string(secret.Data["b"]) != "y" || secret.StringData != nil || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("Secret: %+v", secret)
	}
	ns := decodeAs[*corev1.Namespace](t, v, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}`)
	if ns.Labels[corev1.LabelMetadataName] != "n" {
		t.Errorf("Namespace: %+v", ns)
	}
}

func TestServerFieldsAreDropped(t *testing.T) {
	got := decodeAs[*corev1.ConfigMap](t, newValidator(t, false), `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
		"name": "c", "uid": "u", "generation": 7, "resourceVersion": "9", "creationTimestamp": "2026-01-02T03:04:05Z",
		"managedFields": [{"manager": "m"}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}}`)
	if got.UID != "" || got.Generation != 0 || got.ResourceVersion != "" || got.ManagedFields != nil || got.Annotations != nil {
		t.Errorf("got %+v", got.ObjectMeta)
	}
	if got.CreationTimestamp.IsZero() {
		t.Error("creationTimestamp is gone")
	}
}

func BenchmarkHTTPRoute(b *testing.B) {
	v := newValidator(b, false)
	content := parse(b, route)
	decode(b, v, route)
	b.ReportAllocs()
	for b.Loop() {
		copied := runtime.DeepCopyJSON(content)
		id, err := v.Identify(copied)
		if err != nil {
			b.Fatal(err)
		}
		if _, errs := v.Decode(id, copied); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// A namespace is never guessed. One with nothing behind it is half-written: kubectl sends it on as
// none, and the object lands in the namespace of its context, which nobody has named. Here it is a
// mistake, as is any field with nothing behind it. What says in so many words that there is none
// ("" or null, which a reader of YAML drops), and what says nothing, is in "default".
func TestNamespaceWithoutValue(t *testing.T) {
	v := newValidator(t, false)
	of := func(meta map[string]any) (Identity, error) {
		return v.Identify(map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta})
	}
	for name, meta := range map[string]map[string]any{
		"empty":  {"name": "r", "namespace": ""},
		"absent": {"name": "r"},
	} {
		if id, err := of(meta); err != nil || id.Key.Namespace != "default" {
			t.Errorf("%s: in namespace %q, %v", name, id.Key.Namespace, err)
		}
	}
	_, err := of(map[string]any{"name": "r", "namespace": nil})
	invalid := new(field.Error)
	if !errors.As(err, &invalid) || invalid.Field != "metadata.namespace" {
		t.Fatalf("nothing behind it: %v", err)
	}
	if got, want := Message(invalid), "the field has no value: write it, or remove the field if namespace default is meant"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A field below what should be a list is known in no channel.
func TestFieldBelowWrongType(t *testing.T) {
	v := newValidator(t, false)
	for _, c := range []struct{ text, path string }{
		{`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy", "metadata": {"name": "p"},
		  "spec": {"targetRefs": {"group": "", "kind": "Service", "name": "s"}, "validation": {"hostname": "a.example", "wellKnownCACertificates": "System"}}}`, "spec.targetRefs.name"},
		{`{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "r"},
		  "spec": {"parentRefs": {"name": "gw"}}}`, "spec.parentRefs.name"},
	} {
		_, errs := decode(t, v, c.text)
		found := false
		for _, err := range errs {
			if text := Message(err); strings.Contains(text, "channel") {
				t.Errorf("%s: %s", err.Field, text)
			} else if err.Field == c.path {
				found = true
				if !strings.Contains(text, "is a list: begin each of its items with -") {
					t.Errorf("%s: %s", err.Field, text)
				}
			}
		}
		if !found {
			t.Errorf("nothing is said of %s: %v", c.path, errs)
		}
	}
	// What only the experimental channel has is still told.
	_, errs := decode(t, v, `{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "r"},
	  "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"retry": {"attempts": 1}}], "useDefaultGateways": "All"}}`)
	if len(errs) != 1 || !strings.Contains(Message(errs[0]), "experimental channel") {
		t.Errorf("%v", errs)
	}
}
