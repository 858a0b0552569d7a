package migrate

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the reference and the golden files anew")

var options = Options{Class: "nginx", Gateway: types.NamespacedName{Namespace: "edge", Name: "web"}, GatewayClass: "gatehouse"}

// Every annotation that ingress-nginx documents has a row, and every row says something.
func TestTable(t *testing.T) {
	text, err := os.ReadFile("testdata/annotations.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		if rows[name] == nil {
			t.Errorf("%s has no row", name)
		}
	}
	if !slices.IsSortedFunc(table, func(a, b annotation) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the rows are not in order")
	}
	for _, row := range table {
		if row.text == "" || row.verdict == "" || row.of != "" && rows[row.of] == nil {
			t.Errorf("the row of %s lacks something", row.name)
		}
	}
}

// Each entry of the ConfigMap that ingress-nginx documents has one row, and every row says something.
func TestEntries(t *testing.T) {
	text, err := os.ReadFile("testdata/entries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		if entryOf[name] == nil {
			t.Errorf("%s has no row", name)
		}
	}
	rows := map[string]bool{}
	for _, row := range entries {
		if row.text == "" || row.verdict == "" {
			t.Errorf("the row of %s lacks something", row.names)
		}
		for name := range strings.FieldsSeq(row.names) {
			if rows[name] {
				t.Errorf("%s has two rows", name)
			}
			rows[name] = true
		}
	}
}

func TestReference(t *testing.T) {
	const file = "../../docs/reference/ingress-nginx.md"
	if *update {
		if err := os.WriteFile(file, []byte(Reference()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(text), Reference()); d != "" {
		t.Errorf("%s is not what the table says; go generate ./internal/migrate writes it anew:\n%s", file, d)
	}
}

// inputOf reads manifests.
func inputOf(t *testing.T, text string) Input {
	t.Helper()
	var in Input
	for documents := yaml.NewYAMLReader(newLines(text)); ; {
		document, err := documents.Read()
		if err != nil {
			return in
		}
		var head struct{ Kind string }
		var to any
		switch err := syaml.Unmarshal(document, &head); {
		case err != nil:
			t.Fatal(err)
		case head.Kind == "Ingress":
			in.Ingresses = append(in.Ingresses, &networkingv1.Ingress{})
			to = in.Ingresses[len(in.Ingresses)-1]
		case head.Kind == "Service":
			in.Services = append(in.Services, &corev1.Service{})
			to = in.Services[len(in.Services)-1]
		case head.Kind == "Secret":
			in.Secrets = append(in.Secrets, &corev1.Secret{})
			to = in.Secrets[len(in.Secrets)-1]
		case head.Kind == "ConfigMap" && in.Config == nil: // the first one is the controller's
			in.Config = &corev1.ConfigMap{}
			to = in.Config
		case head.Kind == "ConfigMap":
			in.ConfigMaps = append(in.ConfigMaps, &corev1.ConfigMap{})
			to = in.ConfigMaps[len(in.ConfigMaps)-1]
		default:
			t.Fatalf("a manifest is of kind %q", head.Kind)
		}
		if err := syaml.UnmarshalStrict(document, to); err != nil {
			t.Fatal(err)
		}
	}
}

// simple is an Ingress with annotations.
func simple(annotations ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: shop\n  annotations:\n    a: b\n")
	for _, a := range annotations {
		name, value, _ := strings.Cut(a, "=")
		fmt.Fprintf(&b, "    %s%s: %q\n", prefix, name, value)
	}
	return b.String() + "spec:\n  rules:\n  - host: a.example\n    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}\n"
}

// What protects is converted, or said to open something; what never did is never said to.
func TestGuards(t *testing.T) {
	for _, c := range []struct {
		annotations string // with blanks between
		opens       bool
		verdict     Verdict // of the first
	}{
		{"whitelist-source-range=10.0.0.0/8,::1", false, Converted},
		{"whitelist-source-range=10.0.0.0/8,office", true, NotPossible},
		{"whitelist-source-range=", false, NotNeeded},
		{"whitelist-source-range=,", true, NotPossible},
		{"allowlist-source-range=", true, NotPossible}, // serves nobody
		{"whitelist-source-range=0.0.0.0/0 allowlist-source-range=10.0.0.0/8", false, NotNeeded},
		{"permanent-redirect=https://new.example/?a=b", true, NotPossible},
		{"permanent-redirect=https://new.example/ permanent-redirect-code=304", true, NotPossible},
		{"limit-rps=10r/s", true, NotPossible},
		{"limit-rpm=1 limit-burst-multiplier=2000", true, NotPossible},
		{"ssl-redirect=yes", false, Converted},
		{"denylist-source-range=10.0.0.300", true, NotPossible},
		{"auth-type=basic auth-secret=users", false, Converted},
		{"auth-type=basic auth-secret=shop/users", false, Converted},
		{"auth-type=basic auth-secret=other/users", true, NotPossible},
		{"auth-type=basic", true, NotPossible},
		{"auth-type=digest auth-secret=users", true, NotPossible},
		{"auth-type=basic auth-secret=users auth-secret-type=auth-map", true, NotPossible},
		{"auth-url=https://login.example/check", true, NotPossible},
		{"auth-url=http://login.example/check", true, NotPossible},
		{"auth-url=http://auth.login.svc.cluster.local:4180/oauth2/auth", false, Differs},
		{"auth-url=http://auth/check", false, Differs},
		{"auth-url=http://auth/check?rd=$escaped_request_uri", true, NotPossible},
		{"auth-tls-secret=shop/ca", false, Converted},
		{"auth-tls-secret=ca", true, NotPossible},
		{"auth-tls-secret=shop/ca auth-type=basic auth-secret=users", true, NotPossible},
		{"auth-tls-secret=shop/ca auth-tls-verify-client=off", false, NotNeeded},
		{"auth-tls-secret=shop/ca auth-tls-verify-client=yes", false, Converted}, // an unknown value counts as on
		{"auth-tls-secret=shop/ca auth-tls-verify-client=optional", false, Differs},
		{"auth-tls-secret=shop/ca auth-tls-verify-client=optional_no_ca", false, Differs},
		{"auth-tls-match-cn=CN=me", false, NotNeeded}, // of nothing
		{"configuration-snippet=if", true, NotPossible},
		{"websocket-services=web", false, NotNeeded},
		{"auth-tls-error-page=https://login.example/ auth-tls-secret=shop/ca", false, Converted},
		{"auth-tls-error-page=https://$host/ auth-tls-secret=shop/ca", false, NotPossible},
		{"server-snippet=access_log", true, NotPossible},
		{"enable-modsecurity=true", true, NotPossible},
		{"enable-modsecurity=false", false, NotNeeded},
		{"limit-connections=5", true, NotPossible},
		{"limit-connections=0", false, NotNeeded},
		{"limit-rate=0", false, NotNeeded},
		{"enable-modsecurity=yes", true, NotPossible},
		{"relative-redirects=false", false, NotNeeded},
		{"mirror-request-body=off mirror-target=http://web", false, NotPossible},
		{"limit-rps=5", false, Converted},
		{"limit-rps=-5", false, NotNeeded},
		{"proxy-body-size=5x", true, NotPossible},
		{"proxy-body-size=0", false, Converted},
		{"satisfy=any", false, NotNeeded}, // nothing is asked for
		{"satisfy=any auth-type=basic auth-secret=users denylist-source-range=192.0.2.0/24", false, NotPossible},
		{"satisfy=any auth-url=http://v2.ns.svc:80/x allowlist-source-range=10.0.0.0/8", false, NotPossible}, // both are needed: stricter
		{"something-new=1", true, NotPossible},
		{"rewrite-target=/$uri", false, NotPossible}, // the path is left out
		{"custom-http-errors=404", false, NotPossible},
		{"custom-http-errors=404 default-backend=nonesuch", false, NotPossible},
		{"custom-http-errors=200 default-backend=web", false, NotPossible},
		{"default-backend=web", false, NotPossible},
		{"custom-http-errors=404 default-backend=web disable-proxy-intercept-errors=true", false, NotNeeded},
		{"proxy-buffering=on", false, NotNeeded},
	} {
		_, report := Convert(inputOf(t, simple(strings.Fields(c.annotations)...)), options)
		if report.Opens() != c.opens {
			t.Errorf("%s: opens: %t, want %t: %+v", c.annotations, report.Opens(), c.opens, report)
		}
		name, _, _ := strings.Cut(c.annotations, "=")
		if !slices.ContainsFunc(report, func(f Finding) bool { return f.Annotation == name && f.Verdict == c.verdict }) {
			t.Errorf("%s: want the verdict %s: %+v", c.annotations, c.verdict, report)
		}
	}
}

// A default backend makes the pages of errors, and what has none is told.
func TestCustomErrors(t *testing.T) {
	web := "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: [{port: 8080}, {port: 9090}]}\n"
	out, report := Convert(inputOf(t, simple("custom-http-errors=404,503,401", "default-backend=web")+web), options)
	var pages *v1alpha1.ErrorPages
	for _, o := range out {
		if p, ok := o.(*v1alpha1.TrafficPolicy); ok && p.Spec.Defaults != nil && p.Spec.Defaults.Response.ErrorPages != nil {
			pages = p.Spec.Defaults.Response.ErrorPages
		}
	}
	if pages == nil || len(pages.Pages) != 1 || !slices.Equal(pages.Pages[0].Statuses, []string{"404", "503"}) || *pages.Pages[0].BackendRef.Port != 8080 {
		t.Errorf("the pages are %+v: %+v", pages, report)
	}
	if !slices.ContainsFunc(report, func(f Finding) bool {
		return f.Annotation == "custom-http-errors" && f.Value == "401" && f.Verdict == NotPossible
	}) {
		t.Errorf("nothing is said of 401: %+v", report)
	}
}

// The controller's ConfigMap counts, and what it protects is not dropped in silence.
func TestConfig(t *testing.T) {
	for data, opens := range map[string]bool{
		"{use-proxy-protocol: \"true\"}": true, "{add-headers: a/b}": true, "{something-new: a}": true, "{proxy-body-size: large}": true,
		"{denylist-source-range: 10.0.0.0/8, block-cidrs: 192.0.2.0/24}": false, "{block-cidrs: office}": true, "{hide-headers: \"X-A,X-B\"}": false,
		"{limit-rate: \"0\", use-forwarded-headers: \"false\"}": false, "{load-balance: ewma, proxy-read-timeout: \"30\"}": false,
		"{proxy-body-size: 8m, use-gzip: \"true\"}": false, "{enable-modsecurity: \"false\"}": false,
		"{enable-modsecurity: \"true\"}": true, "{whitelist-source-range: 10.0.0.0/8}": false, "{http-snippet: deny all;}": true,
	} {
		_, report := Convert(inputOf(t, simple()+"---\nkind: ConfigMap\ndata: "+data+"\n"), options)
		if report.Opens() != opens {
			t.Errorf("%s: opens: %t: %+v", data, report.Opens(), report)
		}
	}
}

// The result and the report of many Ingresses, which do not depend on the order in which they are read.
func TestGolden(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, isInput := strings.CutSuffix(f.Name(), ".in.yaml")
		if !isInput {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			in := inputOf(t, string(text))
			first := resultOf(t, in)
			golden := "testdata/" + name + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(first), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), first); d != "" {
				t.Errorf("-want +got, go test -update writes it anew:\n%s", d)
			}
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
			for range 20 {
				random.Shuffle(len(in.Ingresses), func(i, j int) { in.Ingresses[i], in.Ingresses[j] = in.Ingresses[j], in.Ingresses[i] })
				if d := cmp.Diff(first, resultOf(t, in)); d != "" {
					t.Fatalf("in another order:\n%s", d)
				}
			}
		})
	}
}

func resultOf(t *testing.T, in Input) string {
	t.Helper()
	objects, report := Convert(in, options)
	var b strings.Builder
	for _, o := range objects {
		text, err := syaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n# %T\n%s", o, text)
	}
	text, err := syaml.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + "---\n# report\n" + string(text)
}

func newLines(text string) *bufio.Reader { return bufio.NewReader(strings.NewReader(text)) }

// What is equally old, or written in several ways, has the order that ingress-nginx gives it.
func TestPrecedence(t *testing.T) {
	two := func(first, second string) string {
		return strings.Replace(simple(first), "name: web", "name: app-admin", 1) + "---\n" + strings.Replace(simple(second), "name: web", "name: app-web", 1)
	}
	guarded := func(in Input) (routes int, guarded bool) {
		objects, _ := Convert(in, options)
		for _, o := range objects {
			switch o.(type) {
			case *gwv1.HTTPRoute:
				routes++
			case *v1alpha1.AuthPolicy:
				guarded = true
			}
		}
		return routes, guarded
	}
	// Of equally old ones the last by name has the path.
	if routes, is := guarded(inputOf(t, two("whitelist-source-range=10.0.0.0/8", ""))); routes != 1 || is {
		t.Errorf("%d routes, guarded: %t", routes, is)
	}
	if routes, is := guarded(inputOf(t, two("", "whitelist-source-range=10.0.0.0/8"))); routes != 1 || !is {
		t.Errorf("%d routes, guarded: %t", routes, is)
	}
	// Prefix and ImplementationSpecific are one type.
	both := inputOf(t, two("whitelist-source-range=10.0.0.0/8", ""))
	both.Ingresses[0].CreationTimestamp = metav1.Unix(1, 0)
	both.Ingresses[1].CreationTimestamp = metav1.Unix(2, 0)
	both.Ingresses[1].Spec.Rules[0].HTTP.Paths[0].PathType = new(networkingv1.PathTypeImplementationSpecific)
	if routes, is := guarded(both); routes != 1 || !is {
		t.Errorf("of two types: %d routes, guarded: %t", routes, is)
	}
	// A path that can't be rewritten keeps its requests.
	objects, _ := Convert(inputOf(t, simple("rewrite-target=/$uri")), options)
	if i := slices.IndexFunc(objects, func(o Object) bool {
		r, ok := o.(*gwv1.HTTPRoute)
		return ok && len(r.Spec.Rules) == 1 && r.Spec.Rules[0].BackendRefs == nil
	}); i < 0 {
		t.Error("the path of a rewrite that can't be made is gone")
	}
	// Redirects keep their codes to themselves.
	objects, _ = Convert(inputOf(t, strings.Replace(simple("permanent-redirect=https://a.test", "permanent-redirect-code=308"), "a.example", "b.example", 1)+"---\n"+
		strings.Replace(simple("permanent-redirect=https://a.test"), "name: web", "name: other", 1)), options)
	codes := map[string]int{}
	for _, o := range objects {
		if r, ok := o.(*gwv1.HTTPRoute); ok {
			codes[r.Name] = *r.Spec.Rules[0].Filters[0].RequestRedirect.StatusCode
		}
	}
	if codes["web"] != 308 || codes["other"] != 301 {
		t.Errorf("codes are %v", codes)
	}
}
