//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// memberCluster is a cluster with an API server and an endpoint of its own.
type memberCluster struct {
	*apiserver.Server
	name, kubeconfig, address string
}

// newMemberCluster starts a cluster that exports the Service api, whose endpoint answers with the cluster's name.
func newMemberCluster(t *testing.T, name, address string, listen net.Listener) *memberCluster {
	t.Helper()
	c := &memberCluster{
		Server: apiserver.Start(t, apiserver.Options{}), name: name, address: address,
		kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
	}
	writeKubeconfig(t, c.Server, "", nil, c.kubeconfig)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(mcscrd.ServiceExportCRD, crd); err != nil {
		t.Fatal(err)
	}
	apiserver.InstallCRDs(t, c.Config, crd)
	server := &http.Server{Handler: says(name), ReadHeaderTimeout: callTimeout}
	go func() { _ = server.Serve(listen) }()
	t.Cleanup(func() { _ = server.Close() })
	c.apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
{apiVersion: v1, kind: Service, metadata: {name: api, namespace: %[1]s}, spec: {ports: [{name: http, port: 8080}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: api-1, namespace: %[1]s, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [%[2]s]}]
`, siteNamespace, address))
	return c
}

func (c *memberCluster) apply(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	(&process{dir: filepath.Dir(file)}).write(t, filepath.Base(file), manifests)
	apiserver.Install(t, c.Config, file)
}

// export says that other clusters may use the Service.
func (c *memberCluster) export(t *testing.T) {
	t.Helper()
	c.apply(t, fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: api, namespace: %s}}\n", siteNamespace))
}

// client reads and writes the cluster's objects.
func (c *memberCluster) client(t *testing.T) client.Client {
	t.Helper()
	out, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// exported is what says that other clusters may use the Service.
func (c *memberCluster) exported() client.Object {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: siteNamespace, Name: "api"}}
	o.SetGroupVersionKind(mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport"))
	return o
}

// cable connects this network with another one, so that it can be cut: what is sent is lost then, as between clusters.
type cable struct{ device, here, there string }

func newCable(t *testing.T, n *ownNetwork) cable {
	t.Helper()
	number := nextLoopback.Add(1)
	c := cable{fmt.Sprintf("ghe%d-%d", loopbackNet, number), fmt.Sprintf("198.18.%d.1", number%250), fmt.Sprintf("198.18.%d.2", number%250)}
	c.ip(t, "link", "add", c.device, "type", "veth", "peer", "name", "eth0", "netns", n.name)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", c.device).Run() })
	c.ip(t, "addr", "add", c.here+"/24", "dev", c.device)
	c.ip(t, "link", "set", c.device, "up")
	c.ip(t, "-n", n.name, "addr", "add", c.there+"/24", "dev", "eth0")
	c.ip(t, "-n", n.name, "link", "set", "eth0", "up")
	return c
}

func (c cable) ip(t *testing.T, args ...string) {
	t.Helper()
	if text, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v %s", strings.Join(args, " "), err, text)
	}
}

const apiURL = "http://api.example/"

// apiRoute leads to the Service of the clusters, with what has requests go on when one of them is lost.
const apiRoute = `- timeouts: {backendRequest: 1s}
  backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: api, port: 8080}]
`

// whoAnswers are the clusters that answer so many requests.
func (s *site) whoAnswers(t *testing.T, n int) string {
	t.Helper()
	found := map[string]bool{}
	for range n {
		o, err := s.call(apiURL)
		if err != nil {
			t.Fatal(err)
		}
		if found[string(o.body)] = true; o.status != http.StatusOK {
			found[fmt.Sprint(o.status)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
}

// from waits until these clusters alone answer, and all of them.
func (s *site) from(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		if got := s.whoAnswers(t, 40); got != strings.Join(names, " ") {
			return fmt.Errorf("%s answer, want %s", got, names)
		}
		return nil
	})
}

// TestMemberClusters protects who serves Services of several clusters without a controller that connects them: what is
// exported is a backend, policies say which cluster gets what, and a cluster that is lost costs no request.
func TestMemberClusters(t *testing.T) {
	t.Parallel()
	network := newNetwork(t)
	if network == nil {
		t.Skip("there is no second network")
	}
	wire := newCable(t, network)
	near, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(wire.here, "8080"))
	if err != nil {
		t.Fatal(err)
	}
	east := newMemberCluster(t, "east", wire.here, near)
	west := newMemberCluster(t, "west", wire.there, network.listen(t, net.JoinHostPort(wire.there, "8080")))
	east.export(t)
	s := startSite(t, map[string]string{
		"api.yaml": siteRules("api", "api.example", apiRoute),
	}, "--member-cluster", "east="+east.kubeconfig, "--member-cluster", "west="+west.kubeconfig)
	s.from(t, "east") // west doesn't export it
	west.export(t)
	s.from(t, "east", "west")

	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west}, {name: east, priority: 1}]}}")
	s.from(t, "west")
	s.set(t, "traffic.yaml", onGateway, "backend: {clusters: {order: [{name: west, weight: 0}]}}")
	s.from(t, "east")

	// The default of requests that have no timeout would be to wait for an answer that is lost.
	s.set(t, "traffic.yaml", onGateway,
		"request: {retry: {attempts: 5, codes: [504]}}\nbackend: {connectTimeout: 250ms, retryBudget: {minRetries: 256}, outlierDetection: {consecutiveErrors: 3, interval: 500ms, ejectionTime: 1s}}")
	s.from(t, "east", "west")
	pace := time.NewTicker(time.Second / 200)
	defer pace.Stop()
	l := startLoad(t, s.listener(), 100, func() string { <-pace.C; return "api.example" })
	l.more(t, 200)
	wire.ip(t, "-n", network.name, "link", "set", "eth0", "down")
	west.Kill()
	s.problem(t, "cluster west", "its last state stays in force")
	l.more(t, 400)
	if got := s.whoAnswers(t, 40); got != "east" {
		t.Errorf("%s answer while west is cut off", got)
	}
	wire.ip(t, "-n", network.name, "link", "set", "eth0", "up")
	back := time.Now()
	s.from(t, "east", "west")
	t.Logf("west has answered again %s after its network was back", time.Since(back).Round(10*time.Millisecond))
	west.Resume()
	s.healed(t, "cluster west")
	l.more(t, 100)
	n, wrong := l.passed()
	if len(wrong) > 0 {
		t.Errorf("of %d requests these failed: %v", n, wrong)
	}

	// What a cluster doesn't export any more is not sent to.
	if err := west.client(t).Delete(t.Context(), west.exported()); err != nil {
		t.Fatal(err)
	}
	s.from(t, "east")
}
