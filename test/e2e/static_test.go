//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// What config/provisioner.yaml installs.
const (
	staticNamespace  = "gatehouse-provisioner"
	staticClass      = "gatehouse-static"
	staticController = "gatehouse.dev/provisioner"
)

// TestStaticMode protects the life of a Gateway's own process, with no more rights
// than the provisioner's processes have: it serves, takes in what changes, ends with
// its Envoy, and the next one serves again. Nobody else has its Lease.
func TestStaticMode(t *testing.T) {
	t.Parallel()
	needTools(t)
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	apiserver.Install(t, server.Config, "../../config/provisioner.yaml")
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, gwv1.Install} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	// The API server takes no Endpoints on loopback, so the route has no backend.
	objects := filepath.Join(t.TempDir(), "objects.yaml")
	text := "{apiVersion: v1, kind: Namespace, metadata: {name: " + siteNamespace + "}}\n" +
		strings.ReplaceAll(siteGateway(fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", 80+portOffset)), "gatewayClassName: gatehouse", "gatewayClassName: "+staticClass) +
		siteRules("home", "home.example", "- filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301, path: {type: ReplaceFullPath, replaceFullPath: /there}}}]")
	if err := os.WriteFile(objects, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	apiserver.Install(t, server.Config, objects)

	s := &site{address: newAddress()}
	state, err := os.MkdirTemp(scratch, "s")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := accountKubeconfig(t, server, staticNamespace, "gatehouse-static")
	start := func() *pod {
		tools := needTools(t)
		health := port.OfTest(t)
		p := &pod{health: net.JoinHostPort("127.0.0.1", strconv.Itoa(health))}
		p.Cmd = exec.Command(tools.gatehouse, "static-mode", "--gateway-ctlr-name", staticController, "--gatewayclass", staticClass,
			"--gateway", siteNamespace+"/gw", "--update-gatewayclass-status=false", "--leader-election-lock-name", "gw-lock",
			"--health-port", strconv.Itoa(health), "--metrics-disable", "--kubeconfig", kubeconfig,
			"--envoy", tools.envoy, "--state-dir", state, "--concurrency", "1", "--drain-timeout", "1s")
		p.Env = append(os.Environ(), "POD_IP="+s.address, "POD_NAMESPACE="+staticNamespace, "POD_NAME=gw-1")
		p.run(t)
		eventually(t, siteTimeout, p.ready)
		s.answers(t, "http://home.example/", http.StatusMovedPermanently)
		return p
	}

	p := start()
	gateway := &gwv1.Gateway{}
	eventually(t, siteTimeout, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: siteNamespace, Name: "gw"}, gateway); err != nil {
			return err
		}
		addresses := gateway.Status.Addresses
		if len(addresses) != 1 || addresses[0].Value != s.address || !meta.IsStatusConditionTrue(gateway.Status.Conditions, "Programmed") {
			return fmt.Errorf("status %+v", gateway.Status)
		}
		return nil
	})
	before := gateway.DeepCopy()
	second := gateway.Spec.Listeners[0]
	second.Name, second.Port = "second", 8080+portOffset
	gateway.Spec.Listeners = append(gateway.Spec.Listeners, second)
	// Not an Update, which fails when the status has been written meanwhile.
	if err := c.Patch(t.Context(), gateway, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.answers(t, "http://home.example:8080/", http.StatusMovedPermanently)
	p.signal(t)
	p.ends(t)
	if left := processesNaming(state); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}

	p = start()
	var leases coordinationv1.LeaseList
	if err := c.List(t.Context(), &leases, client.InNamespace(staticNamespace)); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(leases.Items, []string{"gw-lock"}, func(l coordinationv1.Lease, name string) bool { return l.Name == name }) {
		t.Errorf("Leases %v", leases.Items)
	}
	p.signal(t)
	p.ends(t)
	if err := c.List(t.Context(), &leases, client.InNamespace(staticNamespace)); err != nil || len(leases.Items) > 0 {
		t.Errorf("Leases are left: %v %v", leases.Items, err)
	}
	if log := p.stderr.String(); strings.Contains(log, "forbidden") {
		t.Errorf("a right is missing:\n%s", log)
	}
}

// accountKubeconfig is for a ServiceAccount, with the rights that it has.
func accountKubeconfig(t *testing.T, server *apiserver.Server, namespace, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, server, "system:serviceaccount:"+namespace+":"+name,
		[]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}, file)
	return file
}

// writeKubeconfig writes a kubeconfig for somebody; the administrator if there is no name.
func writeKubeconfig(t *testing.T, server *apiserver.Server, name string, groups []string, file string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server: server.Config.Host, CertificateAuthorityData: server.Config.CAData, CertificateAuthority: server.Config.CAFile,
		InsecureSkipTLSVerify: server.Config.Insecure,
	}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token: server.Config.BearerToken, Impersonate: name, ImpersonateGroups: groups,
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}
