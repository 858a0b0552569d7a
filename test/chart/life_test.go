package chart

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// patience bounds every wait; none takes that long.
const patience = 3 * time.Minute

// TestLife installs, uses, upgrades and uninstalls the chart twice, the Gateways being
// deleted last, as nobody should: nothing of the release may stay that can't be deleted,
// and clients must not notice. It needs a cluster that has the image of the name in
// GATEHOUSE_TEST_CHART; test/chart/run brings both.
func TestLife(t *testing.T) {
	image := os.Getenv("GATEHOUSE_TEST_CHART")
	if image == "" {
		t.Skip("GATEHOUSE_TEST_CHART names no image; test/chart/run does")
	}
	repository, tag, _ := strings.Cut(image, ":")
	in := open(t)
	values := []string{"--set", "image.repository=" + repository + ",image.tag=" + tag + ",image.pullPolicy=Never", "--wait", "--timeout", "4m"}
	release := func(verb string, more ...string) {
		t.Helper()
		in.helm(slices.Concat([]string{verb, "gatehouse", chart, "--namespace", "gatehouse-system", "--set", "fleetAPI.enabled=true"}, values, more)...)
	}
	uninstall := func() {
		t.Helper()
		in.helm("uninstall", "gatehouse", "--namespace", "gatehouse-system", "--wait", "--timeout", "4m")
		if left := in.kubectl("get", "gatewayclass", "--ignore-not-found", "gatehouse"); left != "" {
			t.Errorf("the class is left:\n%s", left)
		}
	}

	in.kubectl("create", "namespace", "gatehouse-system")
	in.kubectl("wait", "-n", "gatehouse-system", "--for=create", "serviceaccount/default", "--timeout=3m")
	before := in.listed()
	var kept []string
	for round := range 2 {
		release("install", "--set", "replicas=1")
		in.kubectl("create", "namespace", "shop")
		in.gateway("gatehouse")
		address := in.programmed()
		in.serves(address)
		release("upgrade", "--set", "replicas=2")
		in.serves(address)
		in.showsProxies(len(strings.Fields(in.proxies())))
		in.listsProxies()
		proxies := in.proxies()
		if got := in.kubectl("get", "gatewayclass", "gatehouse", "-o", "jsonpath={.metadata.finalizers}"); !strings.Contains(got, "gateway-exists") {
			t.Errorf("a class in use has the finalizers %s, so there is nothing to test", got)
		}

		if round == 1 { // another release, which must not notice
			in.helm(slices.Concat([]string{"install", "internal", chart, "--namespace", "gatehouse-internal", "--create-namespace",
				"--set", "config.controllerName=example.com/internal,gatewayClass.name=internal,crds.install=false,replicas=1"}, values)...)
			in.kubectl("create", "namespace", "beside")
			in.apply(manifest("beside", "internal"))
			in.kubectl("wait", "-n", "beside", "gateway/web", "--for=condition=Programmed", "--timeout=3m")
		}
		uninstall()
		in.serves(address)
		if round == 1 {
			for what, want := range map[string]string{
				"deployment/internal-gatehouse -n gatehouse-internal -o jsonpath={.status.readyReplicas}": "1",
				"gatewayclass/internal -o jsonpath={.metadata.finalizers[0]}":                             "gateway-exists-finalizer.gateway.networking.k8s.io",
			} {
				if got := in.kubectl(append([]string{"get"}, strings.Fields(what)...)...); got != want {
					t.Errorf("of the other release, %s is %q", what, got)
				}
			}
			in.helm("uninstall", "internal", "--namespace", "gatehouse-internal", "--wait", "--timeout", "4m")
			in.kubectl("delete", "namespace", "beside", "gatehouse-internal", "--timeout=3m")
		}

		// Installed again, it goes on with the proxies that serve.
		release("install")
		if got := in.programmed(); got != address {
			t.Errorf("the Gateway has moved from %s to %s", address, got)
		}
		in.serves(address)
		if diff := cmp.Diff(proxies, in.proxies()); diff != "" {
			t.Errorf("the proxies were replaced (-before +after):\n%s", diff)
		}
		uninstall()
		in.serves(address)

		in.kubectl("delete", "namespace", "shop", "--timeout=3m")
		if round == 0 {
			kept = slices.Clone(before)
			for _, ours := range []string{"authpolicies", "gatewayblueprints", "gatewayclassvalues", "gatewayparameters", "gatewayvalues", "ratelimitpolicies", "routefilters", "trafficpolicies"} {
				kept = append(kept, "CustomResourceDefinition /"+ours+".gatehouse.dev")
			}
			slices.Sort(kept)
		}
		if diff := cmp.Diff(kept, in.listed()); diff != "" {
			t.Errorf("after round %d (-want +got):\n%s", round+1, diff)
		}
	}
}

// running is a cluster with the programs to use it.
type running struct {
	*testing.T
	*cluster.Cluster
	programs map[string]string
}

func open(t *testing.T) *running {
	t.Helper()
	c, err := cluster.Open()
	if err != nil {
		t.Fatal(err)
	}
	path, err := helmPath()
	if err != nil {
		t.Fatal("helm: ", err)
	}
	in := &running{t, c, map[string]string{"helm": path, "kubectl": "kubectl", "gatehouse": os.Getenv("GATEHOUSE_BIN")}}
	if cache, err := cluster.Cache(); err == nil && c.Dir != "" {
		in.programs["kubectl"] = filepath.Join(cache, "bin", "kubectl")
	}
	return in
}

// run runs a program in the cluster's network and returns what it prints.
func (in *running) run(input, program string, args ...string) string {
	in.Helper()
	cmd := exec.Command(in.programs[program], args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := in.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		in.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

func (in *running) helm(args ...string)           { in.Helper(); in.run("", "helm", args...) }
func (in *running) kubectl(args ...string) string { in.Helper(); return in.run("", "kubectl", args...) }
func (in *running) apply(manifest string) {
	in.Helper()
	in.run(manifest, "kubectl", "apply", "-f", "-")
}
func (in *running) gateway(class string) { in.Helper(); in.apply(manifest("shop", class)) }
func (in *running) within(what string, f func() error) {
	in.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			in.Fatalf("%s: %v", what, err)
		}
	}
}

// manifest is a Gateway that redirects, so that it needs no backend.
func manifest(namespace, class string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: %[1]s}
spec: {gatewayClassName: %[2]s, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: home, namespace: %[1]s}
spec: {parentRefs: [{name: web}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301, hostname: there.example}}]}]}
`, namespace, class)
}

// programmed waits for the Gateway and returns its address.
func (in *running) programmed() string {
	in.Helper()
	in.kubectl("wait", "-n", "shop", "gateway/web", "--for=condition=Programmed", "--timeout=3m")
	return in.kubectl("get", "-n", "shop", "gateway/web", "-o", "jsonpath={.status.addresses[0].value}")
}

// proxies are the pods of the Gateway, by UID.
func (in *running) proxies() string {
	in.Helper()
	return in.kubectl("get", "-n", "shop", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
}

// showsProxies waits until `gatehouse proxies` shows each proxy and that it is well. It asks every controller
// through the API server and the kubelet.
func (in *running) showsProxies(n int) {
	in.Helper()
	in.within("gatehouse proxies shows each proxy", func() error {
		cmd := exec.Command(in.programs["gatehouse"], "proxies", "-n", "shop")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := in.Start(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		if err == nil && strings.Count(out.String(), " Current") != n {
			err = fmt.Errorf("not %d proxies that are well", n)
		}
		if err != nil {
			return fmt.Errorf("%w:\n%s", err, out.String())
		}
		return nil
	})
}

// listsProxies looks at the proxies as kubectl does: their table, the way of a pod that ends and of the one in its place, and
// that they are for those alone who may view the namespace.
func (in *running) listsProxies() {
	in.Helper()
	// Discovery fails until a controller answers for the group, as for every aggregated API.
	in.kubectl("wait", "--for=condition=Available", "apiservice/v1alpha1.fleet.gatehouse.dev", "--timeout=3m")
	pods := func() string {
		return in.kubectl("get", "-n", "shop", "pods", "--field-selector=status.phase=Running", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
	}
	shows := func() {
		in.within("kubectl get proxies shows each proxy", func() error {
			table := in.kubectl("get", "proxies", "-A")
			for pod := range strings.FieldsSeq(pods()) {
				if !slices.ContainsFunc(strings.Split(table, "\n"), func(line string) bool {
					return strings.HasPrefix(line, "shop ") && strings.Contains(line, pod) && strings.Contains(line, " Current ")
				}) {
					return fmt.Errorf("%s is not Current in\n%s", pod, table)
				}
			}
			return nil
		})
	}
	shows()
	first, _, _ := strings.Cut(pods(), "\n")
	if got := in.kubectl("get", "-n", "shop", "proxy", first, "-o", "jsonpath={.kind} {.status.gateway} {.status.state}"); got != "Proxy shop/web Current" {
		in.Errorf("of the proxy %s kubectl says %q", first, got)
	}
	var seen output
	watch := exec.Command(in.programs["kubectl"], "get", "-n", "shop", "proxies", "-w", "--output-watch-events")
	watch.Stdout, watch.Stderr = &seen, &seen
	if err := in.Start(watch); err != nil {
		in.Fatal(err)
	}
	in.within("kubectl watches", func() error { return seen.has("ADDED", first) })
	in.kubectl("delete", "-n", "shop", "pod", first, "--wait=false")
	in.within("the watch tells of the end of a proxy", func() error { return seen.has("DELETED", first) })
	_ = watch.Process.Kill()
	_ = watch.Wait()
	in.kubectl("wait", "-n", "shop", "--for=delete", "pod/"+first, "--timeout=3m")
	shows()

	for who, may := range map[string]string{"system:serviceaccount:shop:default": "no", "system:serviceaccount:shop:viewer": "yes"} {
		if may == "yes" {
			in.kubectl("create", "-n", "shop", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount=shop:viewer")
		}
		cmd := exec.Command(in.programs["kubectl"], "get", "-n", "shop", "proxies", "--as="+who)
		err := in.Start(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		if (err == nil) != (may == "yes") {
			in.Errorf("%s sees proxies: %v, should be %s", who, err, may)
		}
	}
}

// output is what a program has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// has is nil if a line has all of these.
func (o *output) has(parts ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return nil
		}
	}
	return fmt.Errorf("no line with %q in\n%s", parts, o.text.String())
}

// serves waits until the Gateway answers.
func (in *running) serves(address string) {
	in.Helper()
	web := &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: in.Dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	in.within("the Gateway answers", func() error { return ask(in.Context(), web, http.MethodGet, address, http.StatusMovedPermanently) })
}

// listed is what is in the cluster: all that `kubectl get all,crd -A` shows, and what
// else the chart has. What ends is waited for.
func (in *running) listed() []string {
	in.Helper()
	list := func() []string {
		text := in.kubectl("get", "all,crd,gatewayclasses,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,poddisruptionbudgets",
			"-A", "-o", `go-template={{range .items}}{{.kind}} {{with .metadata.namespace}}{{.}}{{end}}/{{.metadata.name}}{{if .metadata.deletionTimestamp}} (ends){{end}}{{"\n"}}{{end}}`)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		return lines
	}
	var out []string
	in.within("what was deleted has gone", func() error {
		out = list()
		if i := slices.IndexFunc(out, func(s string) bool {
			return strings.HasSuffix(s, "(ends)") || strings.Contains(s, "gatehouse-system/gatehouse")
		}); i >= 0 {
			return fmt.Errorf("%s", out[i])
		}
		return nil
	})
	return out
}
