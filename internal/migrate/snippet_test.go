package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Of directives either all are converted, or none is, and what they let less through is said.
func TestSnippet(t *testing.T) {
	for _, c := range []struct {
		text    string
		verdict Verdict
		beside  string // a further annotation
	}{
		{"more_set_headers \"X-Frame-Options: DENY\";\nmore_set_headers 'X-A: b; c' \"X-B: d\";", Converted, ""},
		{"# a remark; with signs {}\nadd_header X-Team shop always; # and another\nproxy_buffering off;", Converted, ""},
		{"add_header X-Team shop;", Differs, ""},
		{"more_clear_headers Server X-Powered-By;", Converted, ""},
		{"more_clear_headers -s 404 Server;", NotPossible, ""}, // of some statuses alone
		{"more_set_input_headers \"from-ingress: true\";", Converted, ""},
		{"proxy_set_header X-Tenant blue;", Converted, ""},
		{"proxy_set_header Host other.example;", NotPossible, ""},
		{"proxy_set_header X-Client $remote_addr;", NotPossible, ""},
		{"more_set_headers \"X-Frame-Options DENY\";", NotPossible, ""},
		{"more_set_headers -s 404 \"X-A: b\";", NotPossible, ""},
		{"more_set_headers \"Strict-Transport-Security: max-age=1\";", NotPossible, ""},
		{"more_set_headers \"Vary: Origin\";", NotPossible, ""},
		{"more_set_headers \"X-A: $host\";", NotPossible, ""},
		{"deny all;", Converted, ""},
		{"allow 10.0.0.0/8;\nallow 192.0.2.7;\ndeny all;", Converted, ""},
		{"deny 192.0.2.0/24;", Converted, ""},
		{"deny 192.0.2.1; allow 192.0.2.0/24; deny all;", NotPossible, ""},
		{"allow 10.0.0.0/8;", Converted, ""}, // refuses nobody
		{"deny all; allow 10.0.0.0/8;", NotPossible, ""},
		{"deny all;", NotPossible, "whitelist-source-range=10.0.0.0/8"},
		{"return 403;", Converted, ""},
		{"return 444;", NotPossible, ""},
		{"return 403;", NotPossible, "auth-type=basic"},
		{"return 301 https://new.example$request_uri;", Converted, ""},
		{"return 301 https://new.example/$uri;", NotPossible, ""},
		{"return 301 /new;", Differs, ""}, // the query goes with it
		{"return 200 ok;", NotPossible, ""},
		{"if ($request_method != POST) { return 405; }", NotPossible, ""},
		{"more_set_headers \"X-A: b\"", NotPossible, ""},
		{"more_set_headers \"X-A: b;", NotPossible, ""},
		{"more_set_headers \"X-A: \\\"b\";", NotPossible, ""},
		{"auth_request off;", NotPossible, ""},
		{"", Converted, ""},
	} {
		in := inputOf(t, simple(strings.Fields("x=y "+c.beside)...))
		delete(in.Ingresses[0].Annotations, prefix+"x")
		in.Ingresses[0].Annotations[prefix+"configuration-snippet"] = c.text
		_, report := Convert(in, options)
		for _, f := range report {
			if f.Annotation == "configuration-snippet" && (f.Verdict != c.verdict || f.Opens != (c.verdict == NotPossible)) {
				t.Errorf("%s: %+v, want %s", c.text, f, c.verdict)
			}
		}
	}
}

// What directives say is in the objects.
func TestSnippetObjects(t *testing.T) {
	in := inputOf(t, simple("x=y"))
	delete(in.Ingresses[0].Annotations, prefix+"x")
	in.Ingresses[0].Annotations[prefix+"configuration-snippet"] = "allow 10.0.0.0/8;\ndeny all;\nmore_set_headers \"X-A: b\";"
	var got []string
	objects, _ := Convert(in, options)
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.AuthPolicy:
			got = append(got, o.Spec.Authorization[allowRule].Addresses.Allow...)
		case *v1alpha1.TrafficPolicy:
			if l := o.Spec.Defaults; l != nil && l.Response.Headers != nil {
				got = append(got, string(l.Response.Headers.Set[0].Name)+": "+l.Response.Headers.Set[0].Value)
			}
		}
	}
	if d := cmp.Diff([]string{"10.0.0.0/8", "X-A: b"}, got); d != "" {
		t.Error(d)
	}
}

// Directives for a host are converted where one Ingress has all of it.
func TestServerSnippet(t *testing.T) {
	in := inputOf(t, simple("x=y"))
	delete(in.Ingresses[0].Annotations, prefix+"x")
	in.Ingresses[0].Annotations[prefix+"server-snippet"] = "add_header X-A b always;"
	if _, report := Convert(in, options); report.Opens() {
		t.Errorf("alone: %+v", report)
	}
	other := in.Ingresses[0].DeepCopy()
	other.Name, other.Annotations = "other", nil
	other.Spec.Rules[0].HTTP.Paths[0].Path = "/other"
	in.Ingresses = append(in.Ingresses, other)
	if _, report := Convert(in, options); !report.Opens() {
		t.Errorf("beside another one: %+v", report)
	}
}
