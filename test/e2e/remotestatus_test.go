//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// theirs are manifests of a namespace with a Gateway and a route to a Service.
func theirs(t *testing.T, namespace, service string) string {
	t.Helper()
	return "---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}\n" + strings.ReplaceAll(
		siteGateway("{name: http, port: 80, protocol: HTTP}")+siteRoute("home", namespace+".example", service), "namespace: "+siteNamespace, "namespace: "+namespace) +
		fmt.Sprintf("---\n{apiVersion: v1, kind: Service, metadata: {name: v1, namespace: %s}, spec: {ports: [{name: http, port: 8080}]}}\n", namespace)
}

// TestRemoteStatuses protects who looks at the cluster that edge boxes have their objects from: what has become of them there is
// told in the cluster, each box tells it of what is its own, and one of the other's says nothing.
func TestRemoteStatuses(t *testing.T) {
	t.Parallel()
	api := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, api, "", nil, kubeconfig)
	c, err := client.New(api.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := kind.All.AddToScheme(clientgoscheme.Scheme); err != nil {
		t.Fatal(err)
	}
	objects := t.TempDir()
	(&process{dir: objects}).write(t, "objects.yaml", theirs(t, "west", "v1")+theirs(t, "east", "missing"))
	apiserver.Install(t, api.Config, filepath.Join(objects, "objects.yaml"))

	west, east := remoteSite(t), remoteSite(t)
	server := newConfigServer(t, west)
	server.secured(t)
	server.args = []string{
		"--cluster", "--kubeconfig", kubeconfig, "--tls-cert", filepath.Join(server.base, "tls.crt"), "--tls-key", filepath.Join(server.base, "tls.key"),
		"--clients", server.file(t, "clients.yaml", []byte(`clients:
- {name: west, token: of-west, namespaces: [west], statuses: true}
- {name: east, token: of-east, namespaces: [east], statuses: true}
`)),
	}
	server.fromCluster = true
	server.start(t)
	for _, s := range []struct {
		*site
		token string
	}{{west, "of-west"}, {east, "of-east"}} {
		s.args = append(s.args, "--remote", server.address, "--remote-ca", filepath.Join(server.base, "ca.crt"), "--remote-server-name", "config.test",
			"--remote-token-file", server.file(t, s.token, []byte(s.token)))
		s.again(t)
	}
	// A Service without endpoints answers 503, one that is missing 500; a box has nothing of the other's.
	west.answers(t, "http://west.example/", http.StatusServiceUnavailable)
	east.answers(t, "http://east.example/", http.StatusInternalServerError)
	west.answers(t, "http://east.example/", http.StatusNotFound)

	says := func(namespace, condition string, want metav1.ConditionStatus, reason string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			route := &gwv1.HTTPRoute{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "home"}, route); err != nil {
				return err
			}
			if len(route.Status.Parents) != 1 {
				return fmt.Errorf("%d parents in the status of %s", len(route.Status.Parents), namespace)
			}
			got := meta.FindStatusCondition(route.Status.Parents[0].Conditions, condition)
			if got == nil || got.Status != want || got.Reason != reason || got.ObservedGeneration != route.Generation {
				return fmt.Errorf("%s of generation %d: %+v", condition, route.Generation, got)
			}
			return nil
		})
	}
	says("west", "ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	says("east", "ResolvedRefs", metav1.ConditionFalse, "BackendNotFound")
	eventually(t, siteTimeout, func() error {
		gateway := &gwv1.Gateway{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "west", Name: "gw"}, gateway); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(gateway.Status.Conditions, "Programmed") || len(gateway.Status.Addresses) != 1 || gateway.Status.Addresses[0].Value != west.address {
			return fmt.Errorf("%+v", gateway.Status)
		}
		return nil
	})

	// What changes is told, and what changes while nobody is connected too.
	to := func(namespace, service string) {
		t.Helper()
		route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "home"}}
		patch := fmt.Sprintf(`{"spec":{"rules":[{"backendRefs":[{"name":%q,"port":8080}]}]}}`, service)
		if err := c.Patch(t.Context(), route, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	to("east", "v1")
	says("east", "ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	server.kill()
	to("west", "missing")
	server.start(t)
	says("west", "ResolvedRefs", metav1.ConditionFalse, "BackendNotFound")
}
