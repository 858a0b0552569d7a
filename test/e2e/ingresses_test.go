//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Ingresses in files are served as they are where that is asked for. What protects and can't be converted is refused
// on its Ingress, and all else is served; who has written a route instead has its word, and a mended Ingress is served
// at once.
func TestIngresses(t *testing.T) {
	t.Parallel()
	guarded := func(annotations ...string) string {
		return ingressOf("guarded", early, annotations, "rules:\n"+hostPaths("guarded.example", "/ /private v1"))
	}
	s := newSite(t, map[string]string{
		"gateway.yaml": "", "home.yaml": "",
		"web.yaml":      ingressOf("web", early, []string{"rewrite-target: /$1", "proxy-body-size: 1k"}, "rules:\n"+hostPaths("web.example", "~ /shop/(.*) v1")),
		"secure.yaml":   ingressOf("secure", early, nil, "tls: [{hosts: [secure.example], secretName: cert}]\nrules:\n"+hostPaths("secure.example", "/ / v1")),
		"guarded.yaml":  guarded("auth-type: digest"),
		"beside.yaml":   ingressOf("beside", later, nil, "rules:\n"+hostPaths("guarded.example", "/ / v2")),
		"server.yaml":   ingressOf("server", early, []string{"auth-tls-secret: nowhere"}, "rules:\n"+hostPaths("server.example", "/ /a v1")),
		"server-b.yaml": ingressOf("server-b", later, nil, "rules:\n"+hostPaths("server.example", "/ / v2")),
		"regex.yaml":    ingressOf("regex", early, []string{"use-regex: true", "whitelist-source-range: 10.0.0.0/8"}, "rules:\n"+hostPaths("regex.example", "~ /(?!open) v1")),
		"regex-b.yaml":  ingressOf("regex-b", later, nil, "rules:\n"+hostPaths("regex.example", "/ / v2")),
		"other.yaml":    strings.Replace(ingressOf("other", early, nil, "rules:\n"+hostPaths("other.example", "/ / v1")), "ingressClassName: nginx", "ingressClassName: other", 1),
		"classless.yaml": strings.Replace(ingressOf("classless", early, nil, "rules:\n"+hostPaths("classless.example", "/ / v1")),
			"  ingressClassName: nginx\n", "", 1),
		"cert.yaml":   mustSecret(t, "cert", "secure.example"),
		"solver.yaml": ingressOf("solver", later, []string{"whitelist-source-range: 0.0.0.0/0,::/0"}, "rules:\n"+hostPaths("secure.example", "~ /.well-known/acme-challenge/token v2")),
	}, "--ingress-class", "nginx", "--ingress-gateway", siteNamespace+"/gw")
	expect := func(request, want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			got, err := s.asNginx(request)
			if err == nil && got != want {
				err = fmt.Errorf("%s is answered %s, want %s", request, got, want)
			}
			return err
		})
	}
	expect("http://web.example/shop/a", "200 v1 /a")
	expect("POST:1100 http://web.example/shop/a", "413")
	expect("http://secure.example/a", "308 https://secure.example/a")
	expect("https://secure.example/a", "200 v1 /a max-age=31536000; includeSubDomains")
	expect("http://secure.example/.well-known/acme-challenge/token", "200 v2 /.well-known/acme-challenge/token")
	expect("http://guarded.example/private/a", "503")
	expect("http://guarded.example/open", "200 v2 /open")
	expect("http://server.example/a", "503")
	expect("http://server.example/b", "503")
	expect("http://regex.example/secret", "503")
	expect("http://regex.example/open", "503")
	expect("http://other.example/", "404")
	expect("http://classless.example/", "404")

	problems := func() (told string) {
		report, err := s.status()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			told += p.Message + "\n"
		}
		return told
	}
	for _, want := range []string{
		"refused, and answered with 503, since it would let through what ingress-nginx doesn't: auth-type: ",
		"doesn't: auth-tls-secret: ", "served without a part of it: host server.example answers 503", "doesn't: use-regex: path /(?!open)",
	} {
		if told := problems(); !strings.Contains(told, want) {
			t.Errorf("%q is not told:\n%s", want, told)
		}
	}

	s.write(t, "guarded.yaml", guarded("whitelist-source-range: 127.0.0.0/8"))
	expect("http://guarded.example/private/a", "200 v1 /private/a")
	if told := problems(); strings.Contains(told, "auth-type") {
		t.Errorf("what is mended is told of still:\n%s", told)
	}

	s.write(t, "web-route.yaml", siteRoute("web", "web.example", "v2"))
	expect("http://web.example/shop/a", "200 v2 /shop/a")
	s.remove(t, "web-route.yaml")
	expect("http://web.example/shop/a", "200 v1 /a")

	s.remove(t, "guarded.yaml")
	expect("http://guarded.example/private/a", "200 v2 /private/a")
}

// What the controller's ConfigMap says is in force for all Ingresses but those that say otherwise, and one entry that
// protects and can't be converted closes all of them.
func TestIngressConfigMap(t *testing.T) {
	t.Parallel()
	config := func(data string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: controller, namespace: " + siteNamespace + "}\ndata: {" + data + "}\n"
	}
	const narrow = `whitelist-source-range: 10.0.0.0/8, proxy-read-timeout: "1", proxy-body-size: 2k`
	users := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: " + siteNamespace + "}\nstringData: {auth: \"ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\"}\n" // "test"
	s := newSite(t, map[string]string{
		"gateway.yaml": "", "home.yaml": "", "users.yaml": users, "config.yaml": config(narrow),
		"plain.yaml": ingressOf("plain", early, nil, "rules:\n"+hostPaths("plain.example", "/ / v1")),
		"wide.yaml":  ingressOf("wide", early, []string{"whitelist-source-range: 127.0.0.0/8"}, "rules:\n"+hostPaths("wide.example", "/ / v1")),
		"login.yaml": ingressOf("login", early, []string{"auth-type: basic", "auth-secret: users"}, "rules:\n"+hostPaths("login.example", "/ / v1")),
	}, "--ingress-class", "nginx", "--ingress-gateway", siteNamespace+"/gw", "--ingress-configmap", siteNamespace+"/controller")
	expect := func(request, want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			got, err := s.asNginx(request)
			if err == nil && got != want {
				err = fmt.Errorf("%s is answered %s, want %s", request, got, want)
			}
			return err
		})
	}
	expect("http://plain.example/", "403")
	expect("http://wide.example/", "200 v1 /")
	expect("http://ann:test@login.example/", "403")
	expect("POST:3000 http://wide.example/", "413")
	expect("http://wide.example/?delay=3s", "504")

	s.write(t, "config.yaml", config(`http-snippet: "deny all;"`))
	expect("http://wide.example/", "503")
	expect("http://plain.example/", "503")
	s.write(t, "config.yaml", config(`hsts: "false"`))
	expect("http://plain.example/", "200 v1 /")
	expect("http://ann:test@login.example/", "200 v1 /")
}
