package chart

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestBlueGreen protects clients from what is edited of their proxies: a bad image is never promoted and
// costs them nothing, and the promotion of a good revision costs none of 100 requests a second.
func TestBlueGreen(t *testing.T) {
	image := os.Getenv("GATEHOUSE_TEST_CHART")
	if image == "" {
		t.Skip("GATEHOUSE_TEST_CHART names no image; test/chart/run does")
	}
	repository, tag, _ := strings.Cut(image, ":")
	in := open(t)
	in.helm("install", "gatehouse", chart, "--namespace", "gatehouse-system", "--create-namespace", "--wait", "--timeout", "4m",
		"--set", "replicas=1,image.repository="+repository+",image.tag="+tag+",image.pullPolicy=Never")
	t.Cleanup(func() {
		in.kubectl("delete", "namespace", "shop", "--timeout=3m")
		in.helm("uninstall", "gatehouse", "--namespace", "gatehouse-system", "--wait", "--timeout", "4m")
		in.kubectl("delete", "namespace", "gatehouse-system", "--timeout=3m")
	})
	in.kubectl("create", "namespace", "shop")
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {name: web, namespace: shop},
  spec: {rollout: {strategy: BlueGreen}, deployment: {replicas: 2}}}`)
	in.gateway("gatehouse")
	// A Gateway may not choose its image, its class may.
	in.kubectl("patch", "gatewayclass/gatehouse", "--type=merge", "-p",
		`{"spec": {"parametersRef": {"group": "gatehouse.dev", "kind": "GatewayParameters", "name": "web", "namespace": "shop"}}}`)
	address := in.programmed()
	in.rolledOut("Promoted", "")
	in.serves(address)
	first := in.leadsTo()

	stop := in.load(10, map[string]protocol{"HTTP/1": in.http1(address, http.StatusMovedPermanently, kept)})
	edit := func(container string) {
		in.kubectl("patch", "-n", "shop", "gatewayparameters/web", "--type=merge", "-p", `{"spec": {"container": `+container+`}}`)
	}
	promote := func(revision string) {
		in.kubectl("annotate", "-n", "shop", "gateway/web", "--overwrite", "gatehouse.dev/promote="+revision)
	}
	edit(`{"image": {"tag": "nowhere"}}`)
	bad := in.newest(first)
	promote(strings.TrimPrefix(bad, "web-gatehouse-"))
	in.rolledOut("Progressing", "ErrImageNeverPull")
	if got := in.leadsTo(); got != first {
		t.Errorf("clients are led to %s, with a bad image", got)
	}

	edit(`{"image": null, "env": [{"name": "COLOUR", "value": "green"}]}`)
	in.rolledOut("AwaitingPromotion", "")
	second := in.newest(first, bad)
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
