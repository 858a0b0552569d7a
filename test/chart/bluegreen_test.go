package chart

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestBlueGreen protects clients from what is edited of their proxies: a bad image and a bad bootstrap are never
// promoted and cost them nothing, and the promotion of a good revision costs none of 100 requests a second.
func TestBlueGreen(t *testing.T) {
	in := openBlueGreen(t, `{}`)
	address := in.programmed()
	in.rolledOut("Promoted", "")
	in.serves(address)
	first := in.leadsTo()

	stop := in.load(10, map[string]protocol{"HTTP/1": in.http1(address, http.StatusMovedPermanently, kept)})
	promote := func(revision string) {
		in.kubectl("annotate", "-n", "shop", "gateway/web", "--overwrite", "gatehouse.dev/promote="+revision)
	}
	known := []string{first}
	for _, bad := range []struct{ spec, why string }{
		{`{"container": {"image": {"tag": "nowhere"}}}`, "ErrImageNeverPull"},
		// Two layers of one name, which only Envoy refuses.
		{`{"container": {"image": null}, "envoy": {"bootstrap": {"layered_runtime": {"layers":
			[{"name": "a", "static_layer": {}}, {"name": "a", "static_layer": {}}]}}}}`, "is not ready"},
	} {
		in.edit(bad.spec)
		revision := in.newest(known...)
		known = append(known, revision)
		promote(strings.TrimPrefix(revision, "web-gatehouse-"))
		in.rolledOut("Progressing", bad.why)
		if got := in.leadsTo(); got != first {
			t.Errorf("clients are led to %s, with %s", got, bad.why)
		}
	}

	// One that refuses what those that serve take neither keeps it from clients nor goes unnoticed.
	in.edit(`{"envoy": {"bootstrap": {"layered_runtime": {"layers": [` + refusesRegex + `]}}}}`)
	known = append(known, in.newest(known...))
	in.rolledOut("AwaitingPromotion", "")
	in.apply(regexRoute)
	web := &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: in.Dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	in.within("the new route", func() error { return ask(t.Context(), web, http.MethodGet, address+"/b1", http.StatusFound) })
	in.rolledOut("AwaitingPromotion", "they refuse what those take")

	in.edit(`{"container": {"env": [{"name": "COLOUR", "value": "green"}]}, "envoy": null}`)
	in.rolledOut("AwaitingPromotion", "")
	second := in.newest(known...)
	preview := in.kubectl("get", "-n", "shop", "services", "-l", "gatehouse.dev/revision", "-o", "jsonpath={.items[0].spec.clusterIP}")
	in.serves(preview)
	promote(strings.TrimPrefix(second, "web-gatehouse-"))
	in.rolledOut("Promoted", second)
	in.within("the former proxies have gone", func() error {
		if left := in.kubectl("get", "-n", "shop", "pods", "-l", "app.kubernetes.io/instance="+first, "-o", "name"); left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
	if got := in.leadsTo(); got != second {
		t.Errorf("clients are led to %s, want %s", got, second)
	}
	answered(t, stop)
}

// refusesRegex is a layer of Envoy's runtime with which it refuses any regular expression, and regexRoute has one.
const (
	refusesRegex = `{"name": "revision", "static_layer": {"re2.max_program_size.error_level": 1}}`
	regexRoute   = `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: regex, namespace: shop}, spec: {
  parentRefs: [{name: web}], rules: [{matches: [{path: {type: RegularExpression, value: "/b[0-9]+/?"}}],
    filters: [{type: RequestRedirect, requestRedirect: {statusCode: 302, hostname: there.example}}]}]}}`
)

// TestBlueGreenFigures protects clients from revisions that start well and serve worse, on real proxies: one that answers 5 % of
// the requests with errors, one that takes three times as long, and one that refuses a route. None is promoted, and clients have had no more than its
// share of that. One that is no worse is. The TrafficPolicy makes all proxies take 20 ms, and the revisions set
// in Envoy's runtime what it is that differs.
func TestBlueGreenFigures(t *testing.T) {
	in := openBlueGreen(t, `{strategy: Automatic, window: 20s}`)
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: TrafficPolicy, metadata: {name: web, namespace: shop}, spec: {
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}],
  request: {faults: {delay: {duration: 20ms}, abort: {percent: 0}}}}}`)
	address := in.programmed()
	in.rolledOut("Promoted", "")
	in.serves(address)
	first := in.leadsTo()
	revision := func(runtime string) {
		in.edit(`{"envoy": {"bootstrap": {"layered_runtime": {"layers": [{"name": "revision", "static_layer": ` + runtime + `}]}}}}`)
	}
	// Each session is a connection of its own, so that the new proxy gets its share of them.
	clients := map[string]protocol{"HTTP/1": in.http1(address, http.StatusMovedPermanently, brief)}

	stop := in.load(10, clients)
	revision(`{"fault.http.abort.abort_percent": 5}`)
	in.rolledOut("Worse", "with 5xx")
	failing := in.newest(first)
	c := stop()["HTTP/1"]
	t.Logf("%d requests, %d failed", c.asked, len(c.failed))
	if len(c.failed) == 0 || len(c.failed)*100 > c.asked*5 {
		t.Errorf("%d of %d requests failed", len(c.failed), c.asked)
	}
	for _, err := range c.failed {
		if !strings.Contains(err.Error(), "status 503") {
			t.Error(err)
		}
	}
	stop = in.load(10, clients)
	revision(`{"fault.http.delay.fixed_duration_ms": 60}`)
	in.newest(first, failing)
	in.rolledOut("Comparing", "")
	in.rolledOut("Worse", "99% within")
	if got := in.leadsTo(); got != first {
		t.Errorf("clients are led to %s, which is worse", got)
	}
	in.apply(regexRoute)
	in.edit(`{"envoy": {"bootstrap": {"layered_runtime": {"layers": [` + refusesRegex + `]}}}}`)
	in.rolledOut("Comparing", "")
	in.rolledOut("Worse", "it refuses what those that serve take")
	revision(`{"revision.is": 1}`)
	in.rolledOut("Promoted", "")
	if got := in.leadsTo(); got == first {
		t.Errorf("clients are led to %s", got)
	}
	answered(t, stop)
}

// openBlueGreen installs the chart, and a Gateway of two proxies whose revisions are promoted in a way.
func openBlueGreen(t *testing.T, promotion string) *running {
	t.Helper()
	return openFleet(t, `{rollout: {strategy: BlueGreen, promotion: `+promotion+`}, deployment: {replicas: 2}}`)
}

// openFleet installs the chart, with more arguments of helm, and a Gateway with parameters.
func openFleet(t *testing.T, parameters string, more ...string) *running {
	t.Helper()
	image := os.Getenv("GATEHOUSE_TEST_CHART")
	if image == "" {
		t.Skip("GATEHOUSE_TEST_CHART names no image; test/chart/run does")
	}
	repository, tag, _ := strings.Cut(image, ":")
	in := open(t)
	in.helm(append([]string{
		"install", "gatehouse", chart, "--namespace", "gatehouse-system", "--create-namespace", "--wait", "--timeout", "4m",
		"--set", "replicas=1,image.repository=" + repository + ",image.tag=" + tag + ",image.pullPolicy=Never",
	}, more...)...)
	t.Cleanup(func() {
		in.kubectl("delete", "namespace", "shop", "--timeout=3m")
		in.helm("uninstall", "gatehouse", "--namespace", "gatehouse-system", "--wait", "--timeout", "4m")
		in.kubectl("delete", "namespace", "gatehouse-system", "--timeout=3m")
	})
	in.kubectl("create", "namespace", "shop")
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {name: web, namespace: shop}, spec: ` + parameters + `}`)
	in.gateway("gatehouse")
	// A Gateway may not choose its image or what Envoy starts with, its class may.
	in.kubectl("patch", "gatewayclass/gatehouse", "--type=merge", "-p",
		`{"spec": {"parametersRef": {"group": "gatehouse.dev", "kind": "GatewayParameters", "name": "web", "namespace": "shop"}}}`)
	return in
}

// edit changes the parameters of the Gateway.
func (in *running) edit(spec string) {
	in.Helper()
	in.kubectl("patch", "-n", "shop", "gatewayparameters/web", "--type=merge", "-p", `{"spec": `+spec+`}`)
}

// rolledOut waits for a reason of the Gateway's condition, and a part of its message.
func (in *running) rolledOut(reason, part string) {
	in.Helper()
	in.within("RolledOut is "+reason, func() error {
		got := in.kubectl("get", "-n", "shop", "gateway/web", "-o",
			`jsonpath={range .status.conditions[?(@.type=="RolledOut")]}{.reason}: {.message}{end}`)
		if !strings.HasPrefix(got, reason+": ") || !strings.Contains(got, part) {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// leadsTo is the workload that clients are led to.
func (in *running) leadsTo() string {
	in.Helper()
	return in.kubectl("get", "-n", "shop", "service/web-gatehouse", "-o", `jsonpath={.spec.selector.app\.kubernetes\.io/instance}`)
}

// newest waits for a Deployment beside others.
func (in *running) newest(others ...string) (name string) {
	in.Helper()
	in.within("another Deployment", func() error {
		for name = range strings.FieldsSeq(in.kubectl("get", "-n", "shop", "deployments", "-l", "gatehouse.dev/revision", "-o", "jsonpath={.items[*].metadata.name}")) {
			known := false
			for _, other := range others {
				known = known || name == other
			}
			if !known {
				return nil
			}
		}
		return fmt.Errorf("there are only %v", others)
	})
	return name
}
