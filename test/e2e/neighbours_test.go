//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/child"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// neighboursVariable names the directory with what test/neighbours builds.
const neighboursVariable = "GATEHOUSE_NEIGHBOURS"

// neighbourTimeout bounds what takes several programs that retry by their own measure.
const neighbourTimeout = time.Minute

// neighbourhood is an API server with Kubernetes' own controllers, a controller of ours and
// programs of others. What a kubelet and a load balancer do is done by the tests, in a network of
// their own, where 198.18.0.0/24 is this machine.
type neighbourhood struct {
	*controllers
	sh    func(input, script string) string
	ports controllerPorts
	dir   string // what was built
	admin string // the administrator's kubeconfig
}

func startNeighbourhood(t *testing.T) *neighbourhood {
	t.Helper()
	dir := os.Getenv(neighboursVariable)
	if dir == "" {
		t.Skip("needs programs of others: make neighbours builds them, and runs this")
	}
	kubectl := findKubectl(t)
	n := &neighbourhood{
		controllers: startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml"),
		ports:       freePorts(t), dir: dir, admin: filepath.Join(t.TempDir(), "admin"),
	}
	n.sh = kubectl.shell(t, n.controllers)
	writeKubeconfig(t, n.server, "", nil, n.admin)
	n.start(t, filepath.Join(string(kubectl), "kube-controller-manager"), "--kubeconfig="+n.admin, "--leader-elect=false",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port.OfTest(t)), "--cert-dir="+t.TempDir(),
		"--controllers=clusterrole-aggregation-controller,deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller")
	crds, err := filepath.Glob(filepath.Join(dir, "crds", "*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("%d CustomResourceDefinitions in %s: %v", len(crds), dir, err)
	}
	n.sh("", "kubectl apply --server-side -f "+filepath.Join(dir, "crds")+" && kubectl wait --for=condition=Established --timeout=60s crd --all")
	controller := n.run(t, nil, "--config", n.configure(t, "config.yaml", map[string]any{
		"ports": n.ports, "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
	}))
	controller.answers(t, n.ports.Health, "/readyz")
	return n
}

// start runs a program of others, for the time of the test.
func (n *neighbourhood) start(t *testing.T, program string, args ...string) {
	t.Helper()
	var log output.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.admin)
	ended, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-ended:
			t.Errorf("%s has ended: %s", filepath.Base(program), cmd.ProcessState)
		default:
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), log.Tail(40))
		}
	})
}

// apply has the administrator apply manifests.
func (n *neighbourhood) apply(manifests string) {
	n.sh(manifests, "kubectl apply --server-side --force-conflicts -f -")
}

// serve gives the fleet of a Gateway what a node and a load balancer would: it runs one of its pods,
// and its Service has the address. Pods are asked for by a Deployment.
func (n *neighbourhood) serve(t *testing.T, namespace, gateway, address string) *pod {
	t.Helper()
	of := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{gwv1.GatewayNameLabelKey: gateway}}
	pods := &corev1.PodList{}
	eventually(t, neighbourTimeout, func() error {
		if err := n.List(t.Context(), pods, of...); err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("%d pods of Gateway %s/%s: %w", len(pods.Items), namespace, gateway, err)
		}
		return nil
	})
	made := &pods.Items[0]
	runs(made, "127.0.0.1")
	if err := n.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	p := n.runPod(t, made, n.ports)
	t.Cleanup(func() { // its Envoy would outlive it otherwise
		p.signal(t)
		p.ends(t)
	})
	eventually(t, neighbourTimeout, p.ready)
	services := &corev1.ServiceList{}
	if err := n.List(t.Context(), services, of...); err != nil || len(services.Items) != 1 {
		t.Fatalf("%d Services: %v", len(services.Items), err)
	}
	service := &services.Items[0]
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	if err := n.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	return p
}

// runs says of a pod what a kubelet would.
func runs(p *corev1.Pod, address string) {
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
}

// gatewayIs waits for a condition of a Gateway.
func (n *neighbourhood) gatewayIs(t *testing.T, namespace, name, condition string) *gwv1.Gateway {
	t.Helper()
	o := &gwv1.Gateway{}
	eventually(t, neighbourTimeout, func() error {
		if err := n.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(o.Status.Conditions, condition); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("Gateway %s/%s: %s is %+v", namespace, name, condition, c)
		}
		return nil
	})
	return o
}

// backendAt answers at an address of this network, and returns a Service that leads there.
func backendAt(t *testing.T, namespace, name, address string) string {
	t.Helper()
	s, err := echo.New(t.Context(), echo.Options{Listen: []string{net.JoinHostPort(address, "8080")}, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run(t.Context()) }()
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {namespace: %[1]s, name: %[2]s}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %[1]s, name: %[2]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [%[3]s]}]
`, namespace, name, address)
}

// httpStatus is what a client gets.
func httpStatus(web *http.Client, url string) (int, error) {
	res, err := web.Get(url)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}
