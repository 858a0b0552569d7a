package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgrade protects clients from `helm upgrade` and `helm rollback`: controllers, CustomResourceDefinitions and proxies of an
// older version become those of this one, and become the older ones again, and no client of any protocol notices. It needs a
// cluster with the images of both, and the checkout of the older one; test/chart/upgrade brings them.
func TestUpgrade(t *testing.T) {
	image, former, checkout := os.Getenv("GATEHOUSE_TEST_CHART"), os.Getenv("GATEHOUSE_TEST_FORMER"), os.Getenv("GATEHOUSE_TEST_FORMER_CHECKOUT")
	if image == "" || former == "" {
		t.Skip("GATEHOUSE_TEST_CHART and GATEHOUSE_TEST_FORMER name no images; test/chart/upgrade does")
	}
	in := open(t)
	release := func(verb, chart, image string, more ...string) {
		t.Helper()
		repository, tag, _ := strings.Cut(image, ":")
		in.helm(append([]string{verb, "gatehouse", chart, "--namespace", "gatehouse-system", "--wait", "--timeout", "4m",
			"--set", "image.repository=" + repository + ",image.tag=" + tag + ",image.pullPolicy=Never"}, more...)...)
	}
	release("install", filepath.Join(checkout, "charts/gatehouse"), former, "--create-namespace")
	t.Cleanup(func() {
		in.kubectl("delete", "namespace", "shop", "--timeout=3m")
		in.helm("uninstall", "gatehouse", "--namespace", "gatehouse-system", "--wait", "--timeout", "4m")
		in.kubectl("delete", "namespace", "gatehouse-system", "--timeout=3m")
	})
	in.kubectl("create", "namespace", "shop")
	in.apply(strings.ReplaceAll(upgraded, "IMAGE", image))
	in.kubectl("wait", "-n", "shop", "deployment/echo", "--for=condition=Available", "--timeout=3m")
	address := in.programmed()
	in.rolled(former)

	sessions := map[string]protocol{
		"HTTP/1": in.http1(address, 200, kept), "calls of gRPC": in.grpcCalls(address), "streams of gRPC": in.grpcStreams(address),
		"WebSocket": in.webSocket(address), "TCP": in.lines(address),
	}
	for name, p := range sessions {
		in.within(name+" is answered", func() error {
			s, err := p.open(t.Context())
			if err == nil {
				err = s.ask()
			}
			if err == nil {
				err = s.end()
			}
			return err
		})
	}
	stop := in.load(4, sessions)
	release("upgrade", chart, image)
	in.rolled(image)
	in.helm("rollback", "gatehouse", "--namespace", "gatehouse-system", "--wait", "--timeout", "4m")
	in.rolled(former)
	answered(t, stop)
}

// rolled waits until all proxies have an image, are ready, and no other is left.
func (in *running) rolled(image string) {
	in.Helper()
	in.within("all proxies run "+image, func() error {
		got := in.kubectl("get", "-n", "shop", "pods", "-l", "app.kubernetes.io/managed-by=gatehouse",
			"-o", `jsonpath={range .items[*]}{.spec.containers[?(@.name=="proxy")].image} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		if want := strings.Repeat(image+" True\n", 2); got != want {
			return fmt.Errorf("they are:\n%s", got)
		}
		return nil
	})
}

// upgraded is what two proxies serve while they are replaced.
const upgraded = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: shop}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - {name: echo, image: 'IMAGE', imagePullPolicy: Never, args: [echo, --listen, 'web=0.0.0.0:3000', --tcp, 'lines=0.0.0.0:3001']}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: shop}
spec:
  selector: {app: echo}
  ports:
  - {name: web, port: 3000}
  - {name: grpc, port: 3002, targetPort: 3000, appProtocol: kubernetes.io/h2c}
  - {name: lines, port: 3001}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {name: web, namespace: shop}
spec: {deployment: {replicas: 2}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: shop}
spec:
  gatewayClassName: gatehouse
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: web}}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: lines, port: 9000, protocol: TCP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {parentRefs: [{name: web, sectionName: http}], rules: [{backendRefs: [{name: echo, port: 3000}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: grpc, namespace: shop}
spec:
  parentRefs: [{name: web, sectionName: http}]
  rules:
  - matches: [{path: {value: /chart.Echo}}]
    backendRefs: [{name: echo, port: 3002}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: lines, namespace: shop}
spec: {parentRefs: [{name: web, sectionName: lines}], rules: [{backendRefs: [{name: echo, port: 3001}]}]}
`
