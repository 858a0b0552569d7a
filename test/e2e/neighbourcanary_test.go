//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/bars"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

const (
	canaryNode = "here"
	// canaryRequests are sent in each step of a canary: so many that chance moves a share by half a point.
	canaryRequests = 9000
)

// kubelet runs the pods of applications in the namespace shop until the test ends: each answers at an address of its own with
// the VERSION that its container is told.
func (n *neighbourhood) kubelet(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: canaryNode}}
	if err := n.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := n.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); running.Wait() })
	k := &podsOfNode{n: n, next: 20, stop: map[string]context.CancelFunc{}, running: &running}
	running.Go(func() {
		for ctx.Err() == nil {
			if err := k.turn(ctx); err != nil && ctx.Err() == nil {
				t.Log(err) // conflicts: the next turn has the newer object
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollEvery):
			}
		}
	})
}

// podsOfNode are the processes of pods, by the pods' names.
type podsOfNode struct {
	n       *neighbourhood
	next    int
	stop    map[string]context.CancelFunc
	running *sync.WaitGroup
}

func (k *podsOfNode) turn(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := k.n.List(ctx, pods, client.InNamespace("shop"), client.HasLabels{"app"}); err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		switch {
		case p.DeletionTimestamp != nil:
			if err := k.n.Delete(ctx, p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
			if stop := k.stop[p.Name]; stop != nil {
				stop()
			}
		case p.Spec.NodeName == "":
			to := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: canaryNode}}
			if err := k.n.SubResource("binding").Create(ctx, p, to); err != nil {
				return err
			}
		case p.Status.Phase != corev1.PodRunning:
			address := "198.18.0." + strconv.Itoa(k.next)
			k.next++
			name := ""
			for _, v := range p.Spec.Containers[0].Env {
				if v.Name == "VERSION" {
					name = v.Value
				}
			}
			s, err := echo.New(ctx, echo.Options{Listen: []string{address + ":8080"}, Name: name})
			if err != nil {
				return err
			}
			of, stop := context.WithCancel(ctx)
			k.stop[p.Name] = stop
			k.running.Go(func() { _ = s.Run(of) })
			runs(p, address)
			if err := k.n.Status().Update(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// canaryCount are the answers that clients got, as a Prometheus would tell Flagger of them.
type canaryCount struct{ all, good atomic.Int64 }

// ServeHTTP answers each query with the share of good answers, in percent, but for the one by which Flagger asks whether
// anybody is there.
func (c *canaryCount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value := 1.0
	if r.URL.Query().Get("query") == "success" {
		value = 100 * float64(c.good.Load()) / max(1, float64(c.all.Load()))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{
		"resultType": "vector", "result": []any{map[string]any{"metric": map[string]any{}, "value": []any{time.Now().Unix(), strconv.FormatFloat(value, 'f', -1, 64)}}},
	}})
}

// answers sends requests to an address, several at a time, and counts who answers.
func (c *canaryCount) answers(t *testing.T, address string, requests int) map[string]int {
	t.Helper()
	by := map[string]int{}
	var mu sync.Mutex
	var senders sync.WaitGroup
	const parallel = 8
	web := &http.Client{Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: parallel}}
	defer web.CloseIdleConnections()
	for range parallel {
		senders.Go(func() {
			for range requests / parallel {
				who, err := whoAnswers(web, address)
				c.all.Add(1)
				if err == nil {
					c.good.Add(1)
				} else {
					who = err.Error()
				}
				mu.Lock()
				by[who]++
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	return by
}

func whoAnswers(web *http.Client, address string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return "", err
	}
	req.Host = "app.example.test"
	res, err := web.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", res.StatusCode)
	}
	var a echo.Answer
	err = json.NewDecoder(res.Body).Decode(&a)
	return a.Name, err
}

// application is a Deployment with a Canary, and two Gateways: one of our fleets, and a facade behind which there is another one.
const application = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayClassValues
metadata: {namespace: gatehouse-system, name: facade}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: facade}
  overrides: {class: gatehouse}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: own}
spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: %[1]d, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: front}
spec: {gatewayClassName: facade, listeners: [{name: http, port: %[2]d, protocol: HTTP}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: app, labels: {app: app}}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}], env: [{name: VERSION, value: v1}]}]}
---
apiVersion: flagger.app/v1beta1
kind: MetricTemplate
metadata: {namespace: shop, name: success}
spec: {provider: {type: prometheus, address: %[3]q}, query: success}
---
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {namespace: shop, name: app}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: app}
  service:
    port: 80
    targetPort: 8080
    hosts: [app.example.test]
    gatewayRefs:
    - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: own}
    - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: front}
  analysis:
    interval: 10s
    threshold: 3
    stepWeights: [20, 50, 80]
    metrics: [{name: success, templateRef: {name: success}, thresholdRange: {min: 100}, interval: 10s}]
`

// TestNeighbourCanary follows a canary of Flagger's to its end, through a fleet of ours and through a facade with another one
// behind it. Each gets the shares of requests that Flagger has said, and nobody gets an error.
func TestNeighbourCanary(t *testing.T) {
	n := startNeighbourhood(t)
	n.kubelet(t)
	seen := &canaryCount{}
	figures := httptest.NewServer(seen)
	t.Cleanup(figures.Close)
	n.start(t, filepath.Join(n.dir, "flagger"), "-kubeconfig="+n.admin, "-mesh-provider=gatewayapi:v1", "-metrics-server="+figures.URL,
		"-port="+strconv.Itoa(port.OfTest(t)), "-log-level=info")
	n.sh("", "kubectl apply --server-side -f "+library(t, "facade"))
	own, front := port.OfTest(t), port.OfTest(t)
	n.apply(fmt.Sprintf(application, own, front, figures.URL))
	n.serve(t, "shop", "own", "198.18.0.2")
	n.serve(t, "shop", "front-served", "198.18.0.3")
	ways := map[string]string{}
	for name, port := range map[string]int{"own": own, "front": front} {
		gateway := n.gatewayIs(t, "shop", name, "Programmed")
		ways[name] = net.JoinHostPort(gateway.Status.Addresses[0].Value, strconv.Itoa(port))
	}
	n.phase(t, "Initialized")
	for name, address := range ways {
		eventually(t, neighbourTimeout, func() error {
			if by := new(canaryCount).answers(t, address, 8); by["v1"] != 8 {
				return fmt.Errorf("by %s answer %v", name, by)
			}
			return nil
		})
	}

	n.sh("", "kubectl set env -n shop deployment/app VERSION=v2")
	farthest := map[string]float64{}
	for _, weight := range []int{20, 50, 80} {
		eventually(t, 2*neighbourTimeout, func() error {
			if got := n.canaryWeight(t); got != weight {
				return fmt.Errorf("the canary's weight is %d, not %d", got, weight)
			}
			return nil
		})
		for name, address := range ways {
			off := func(by map[string]int, of int) float64 {
				return math.Abs(100*float64(by["v2"])/float64(of) - float64(weight))
			}
			eventually(t, neighbourTimeout, func() error { // the proxies have it moments later
				if by := seen.answers(t, address, 200); off(by, 200) > 14 {
					return fmt.Errorf("by %s answer %v", name, by)
				}
				return nil
			})
			by := seen.answers(t, address, canaryRequests)
			t.Logf("weight %d by %s: %v", weight, name, by)
			if by["v1"]+by["v2"] != canaryRequests {
				t.Errorf("weight %d by %s: %v", weight, name, by)
			}
			farthest[name] = max(farthest[name], off(by, canaryRequests))
		}
		if got := n.canaryWeight(t); got != weight {
			t.Fatalf("the weight was %d and is %d: this machine is too slow to count so many requests in a step", weight, got)
		}
	}
	n.phase(t, "Succeeded")
	for name, address := range ways {
		eventually(t, neighbourTimeout, func() error {
			by := seen.answers(t, address, 80)
			if by["v2"] != 80 {
				return fmt.Errorf("by %s answer %v", name, by)
			}
			return nil
		})
	}
	if bad := seen.all.Load() - seen.good.Load(); bad != 0 {
		t.Errorf("%d requests of %d were not answered", bad, seen.all.Load())
	}
	measured := []bars.Figure{
		bars.Bar{Name: "Flagger canary to its end through a fleet, farthest share of requests at a step", Unit: "points", Limit: 3}.Measured(farthest["own"]),
		bars.Bar{Name: "Flagger canary to its end through a facade, farthest share of requests at a step", Unit: "points", Limit: 3}.Measured(farthest["front"]),
	}
	n.judge(t, measured)
}

// phase waits until the Canary is in one.
func (n *neighbourhood) phase(t *testing.T, want string) {
	t.Helper()
	eventually(t, 4*neighbourTimeout, func() error {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("flagger.app/v1beta1")
		o.SetKind("Canary")
		if err := n.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "app"}, o); err != nil {
			return err
		}
		got, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if got == "Failed" {
			return permanent(fmt.Errorf("the canary has failed: %v", o.Object["status"]))
		}
		if got != want {
			return fmt.Errorf("the canary is %s, not %s", got, want)
		}
		return nil
	})
}

// canaryWeight is what Flagger has written into its route.
func (n *neighbourhood) canaryWeight(t *testing.T) int {
	t.Helper()
	route := &gwv1.HTTPRoute{}
	if err := n.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "app"}, route); err != nil {
		t.Fatal(err)
	}
	for _, b := range route.Spec.Rules[0].BackendRefs {
		if strings.HasSuffix(string(b.Name), "-canary") {
			return int(*b.Weight)
		}
	}
	return 0
}

// judge records figures, where that is asked for, and fails if one misses its bar.
func (n *neighbourhood) judge(t *testing.T, figures []bars.Figure) {
	t.Helper()
	for _, f := range figures {
		t.Log(f)
	}
	if os.Getenv("GATEHOUSE_RECORD") != "" {
		if err := bars.Record("../../"+bars.File("08"), bars.Here(t.Context()), figures); err != nil {
			t.Error(err)
		}
	}
	if err := bars.Missed(figures); err != nil {
		t.Error(err)
	}
}
