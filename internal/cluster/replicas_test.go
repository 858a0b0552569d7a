package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	identityclient "github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// proxy connects to a replica as a pod of the Gateway's fleet does: with a token, for
// which it gets a certificate, by which it gets its configuration. It refuses what
// refuse has a text for, and takes the rest.
func (in *installed) proxy(r *replica, pod string, refuse func(t envoy.Type, name string) string) {
	in.Helper()
	account := infra.Name(webGateway, "gatehouse")
	in.until("the fleet has a ServiceAccount", func() bool {
		return in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: account}, &corev1.ServiceAccount{}) == nil
	})
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: pod, Labels: map[string]string{infra.GatewayLabel: "web", "app.kubernetes.io/name": "gatehouse-proxy"}},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "proxy", Image: "proxy"}}},
	}
	if err := in.client.Create(in.Context(), p); err != nil {
		in.Fatal(err)
	}
	p.Status.PodIP, p.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	if err := in.client.Status().Update(in.Context(), p); err != nil {
		in.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{identity.Audience}, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: p.UID},
	}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: account}}
	if err := in.client.SubResource("token").Create(in.Context(), sa, token); err != nil {
		in.Fatal(err)
	}
	dir := in.TempDir()
	o := identityclient.Options{
		API: net.JoinHostPort(r.opts.Self.IP, strconv.Itoa(r.config.Ports.API)), XDS: net.JoinHostPort(r.opts.Self.IP, strconv.Itoa(r.config.Ports.XDS)),
		ServerName: "gatehouse.gatehouse-system.svc", TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt"),
	}
	for file, text := range map[string]string{o.TokenFile: token.Status.Token, o.CAFile: string(r.proxies.(*provisioned).identity.Bundle())} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			in.Fatal(err)
		}
	}
	who, err := identityclient.New(o)
	if err != nil {
		in.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	in.Cleanup(func() { cancel(); <-done })
	go func() { defer close(done); who.Run(ctx) }()
	conn, err := grpc.NewClient("passthrough:xds", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return who.Dial(ctx) }))
	if err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() { _ = conn.Close() })
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		in.Fatal(err)
	}
	for _, t := range []envoy.Type{envoy.Clusters, envoy.Listeners} {
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: t.URL(), Node: &corev3.Node{Id: "team/web"}}); err != nil {
			in.Fatal(err)
		}
	}
	go func() {
		for {
			response, err := stream.Recv()
			if err != nil {
				return
			}
			answer := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
			t, _ := envoy.TypeOf(response.GetTypeUrl())
			for _, resource := range response.GetResources() {
				if text := refuse(t, resource.GetName()); text != "" {
					answer.ErrorDetail = &rpcstatus.Status{Code: 13, Message: text}
				}
			}
			if stream.Send(answer) != nil {
				return
			}
		}
	}()
}

func acceptAll(envoy.Type, string) string { return "" }

// listenerProgrammed is that condition of the Gateway's listener, with the generation
// that the Gateway's own is of.
func (in *installed) listenerProgrammed(listener string) (condition metav1.Condition, generation int64) {
	in.Helper()
	var gw gwv1.Gateway
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &gw); err != nil {
		in.Fatal(err)
	}
	for _, l := range gw.Status.Listeners {
		if string(l.Name) == listener {
			if c := meta.FindStatusCondition(l.Conditions, string(gwv1.ListenerConditionProgrammed)); c != nil {
				condition = *c
			}
		}
	}
	if c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionAccepted)); c != nil {
		generation = c.ObservedGeneration
	}
	return condition, generation
}

// routeSays reports whether the status of the route has a text.
func (in *installed) routeSays(text string) bool {
	in.Helper()
	var route gwv1.HTTPRoute
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "route"}, &route); err != nil {
		in.Fatal(err)
	}
	return strings.Contains(fmt.Sprint(route.Status.Parents), text)
}

// TestRefusalAtAFollower protects what a proxy refuses from being known only to the
// replica that it is connected to, and from being forgotten when another one leads.
func TestRefusalAtAFollower(t *testing.T) {
	in := install(t)
	leader := in.start()
	in.until("the first replica leads", func() bool { return leader.leads.Load() != nil })
	follower := in.start()
	gateway := func(more string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
  listeners: [{name: http, port: 80, protocol: HTTP}` + more + `]}}`
	}
	in.apply(gateway(""),
		`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: backend}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: route}, spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: backend, port: 80}]}]}}`)
	in.until("both replicas serve the Gateway", func() bool {
		return len(leader.listenersOf(webGateway)) > 0 && len(follower.listenersOf(webGateway)) > 0
	})
	in.proxy(leader, "web-1", acceptAll)
	in.until("the listener is programmed", func() bool {
		c, _ := in.listenerProgrammed("http")
		return c.Status == metav1.ConditionTrue
	})

	in.proxy(follower, "web-2", func(t envoy.Type, name string) string {
		switch {
		case t == envoy.Listeners && strings.HasPrefix(name, "http-80"):
			return "the listener is not to my taste"
		case t == envoy.Clusters && strings.Contains(name, "backend"):
			return "nor is the cluster"
		}
		return ""
	})
	refused := func() bool {
		c, _ := in.listenerProgrammed("http")
		return strings.Contains(c.Message, "not to my taste") && in.routeSays("nor is the cluster")
	}
	in.until("the leader's status says what the follower's proxy refuses", refused)
	if follower.leads.Load() != nil {
		t.Fatal("the follower leads")
	}

	leader.vanish()
	in.until("the follower leads", func() bool { return follower.leads.Load() != nil })
	in.apply(gateway(`, {name: more, port: 81, protocol: HTTP}`))
	in.until("the new leader writes", func() bool { _, generation := in.listenerProgrammed("more"); return generation == 2 })
	if !refused() {
		c, _ := in.listenerProgrammed("http")
		t.Errorf("the refusal is forgotten: %+v", c)
	}
}
