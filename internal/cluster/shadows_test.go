package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Policies and backends of the cluster that a file's are used for say so, as routes do, at
// the Gateways that those are used for.
func TestShadowedPolicies(t *testing.T) {
	in := install(t)
	dir := t.TempDir()
	const (
		tls = `{apiVersion: gateway.networking.k8s.io/v1, kind: BackendTLSPolicy, metadata: {namespace: team, name: both},
			spec: {targetRefs: [{group: "", kind: Service, name: app}], validation: {hostname: app.test, wellKnownCACertificates: System}}}`
		traffic = `{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XBackendTrafficPolicy, metadata: {namespace: team, name: both},
			spec: {targetRefs: [{group: "", kind: Service, name: app}], retryConstraint: {budget: {percent: 10}}}}`
		backend = `{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XBackend, metadata: {namespace: team, name: both},
			spec: {type: ExternalHostname, port: {number: 443}, externalHostname: {hostname: api.test}}}`
	)
	in.apply(
		gatewayOf("gatehouse"), tls, traffic, backend,
		`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: app}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {parentRefs: [{name: web}], rules: [
			{backendRefs: [{name: app, port: 80}, {group: gateway.networking.x-k8s.io, kind: XBackend, name: both}]}]}}`,
	)
	file := filepath.Join(dir, "all.yaml")
	if err := os.WriteFile(file, []byte(strings.Join([]string{tls, traffic, backend}, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	in.start(func(c *configuration.Configuration) {
		c.Sources = append([]configuration.Source{{Files: &configuration.Files{Paths: []string{dir}}}}, c.Sources...)
	})
	// accepted is the condition for the Gateway in the cluster.
	accepted := func(of object.Kind) metav1.Condition {
		d := kind.All.Of(of)
		o := d.New()
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "both"}, o); err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Status.Entries(d.Status.Of(o)) {
			if c, ok := condition.Find(e.Conditions, "Accepted"); ok && e.Ref.Name == "web" && c.ObservedGeneration == o.GetGeneration() {
				return c
			}
		}
		return metav1.Condition{}
	}
	kinds := []object.Kind{kind.BackendTLSPolicy, kind.BackendTrafficPolicy, kind.XBackend}
	for _, of := range kinds {
		in.until("the "+of.Name()+" says that it isn't used", func() bool {
			c := accepted(of)
			return c.Status == metav1.ConditionFalse && c.Reason == string(gwv1.PolicyReasonConflicted) && strings.Contains(c.Message, "sources[0]") && !strings.Contains(c.Message, dir)
		})
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, of := range kinds {
		in.until("the "+of.Name()+" is accepted", func() bool { return accepted(of).Status == metav1.ConditionTrue })
	}
}

// A controller that reads files beside the cluster uses what is listed first, and says
// at the other object that it is not used, as long as that is so.
func TestFilesBesideTheCluster(t *testing.T) {
	in := install(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	route := func(name, host string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: ` + name + `},
			spec: {hostnames: [` + host + `], parentRefs: [{name: web}], rules: [{backendRefs: [{name: app, port: 80}]}]}}`
	}
	in.apply(
		gatewayOf("gatehouse"),
		`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: app}, spec: {ports: [{port: 80}]}}`,
		route("both", "cluster.test"), route("cluster", "only-cluster.test"),
	)
	write("both.yaml", route("both", "file.test"))
	write("file.yaml", route("file", "only-file.test"))
	write("service.yaml", `{apiVersion: v1, kind: Service, metadata: {namespace: team, name: app}, spec: {ports: [{port: 80}]}}`)

	r := in.start(func(c *configuration.Configuration) {
		c.Sources = append([]configuration.Source{{Files: &configuration.Files{Paths: []string{dir}}}}, c.Sources...)
	})
	hosts := func() string {
		var out []string
		for _, item := range view.Of(r.pipeline).Items {
			if item.Kind == "HTTPRoute" {
				out = append(out, item.Summary.Hosts...)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	// accepted is the condition in the cluster.
	accepted := func(name string) metav1.Condition {
		o := &gwv1.HTTPRoute{}
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: name}, o); err != nil {
			t.Fatal(err)
		}
		for _, parent := range o.Status.Parents {
			for _, c := range parent.Conditions {
				if c.Type == string(gwv1.RouteConditionAccepted) && c.ObservedGeneration == o.Generation && len(parent.Conditions) > 0 {
					return c
				}
			}
		}
		return metav1.Condition{}
	}
	conflicted := func() bool {
		c := accepted("both")
		return c.Status == metav1.ConditionFalse && c.Reason == string(gwv1.PolicyReasonConflicted) && strings.Contains(c.Message, "sources[0]") && !strings.Contains(c.Message, dir)
	}
	problems := func() (about []string) {
		for _, p := range r.admin().View().Problems {
			if p.Reason == source.Duplicate {
				about = append(about, p.Key.String())
			}
		}
		return about
	}
	regarded := func(kind string) bool {
		list := &eventsv1.EventList{}
		if err := in.client.List(in.Context(), list); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "Conflicted" && e.Regarding.Kind == kind && strings.Contains(e.Note, "sources[0]") && !strings.Contains(e.Note, dir)
		})
	}

	in.until("the cluster's route says that it isn't used", conflicted)
	in.until("another route of the cluster is accepted", func() bool { return accepted("cluster").Status == metav1.ConditionTrue })
	in.until("Events say so too", func() bool { return regarded("HTTPRoute") && regarded("Service") })
	if got, want := hosts(), "file.test only-cluster.test only-file.test"; got != want {
		t.Errorf("hosts are %s, want %s", got, want)
	}
	if got := problems(); len(got) != 2 || !slices.Contains(got, "HTTPRoute team/both") || !slices.Contains(got, "Service team/app") {
		t.Errorf("problems are about %v", got)
	}

	in.apply(route("both", "changed.test"))
	in.until("the changed route says so still", conflicted)
	if got, want := hosts(), "file.test only-cluster.test only-file.test"; got != want {
		t.Errorf("hosts are %s, want %s", got, want)
	}

	// A Gateway too, whose fleet follows the one that is used.
	write("gateway.yaml", strings.Replace(gatewayOf("gatehouse"), "port: 80", "port: 8080", 1))
	in.until("the cluster's Gateway says that it isn't used", func() bool {
		web := &gwv1.Gateway{}
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, web); err != nil {
			t.Fatal(err)
		}
		return len(web.Status.Conditions) == 1 && web.Status.Conditions[0].Reason == string(gwv1.PolicyReasonConflicted)
	})
	port := func() int32 {
		s := &corev1.Service{}
		err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: infra.Name(webGateway, "gatehouse")}, s)
		if apierrors.IsNotFound(err) {
			return 0 // the fleet is still being made
		}
		if err != nil {
			t.Fatal(err)
		}
		return s.Spec.Ports[0].Port
	}
	in.until("the Service has the file's port", func() bool { return port() == 8080 })
	if err := os.Remove(filepath.Join(dir, "gateway.yaml")); err != nil {
		t.Fatal(err)
	}
	in.until("the cluster's Gateway is accepted again", in.gatewayAccepted)
	in.until("the Service has the cluster's port", func() bool { return port() == 80 })

	if err := os.Remove(filepath.Join(dir, "both.yaml")); err != nil {
		t.Fatal(err)
	}
	in.until("the cluster's route is accepted", func() bool { return accepted("both").Status == metav1.ConditionTrue })
	if got, want := hosts(), "changed.test only-cluster.test only-file.test"; got != want {
		t.Errorf("hosts are %s, want %s", got, want)
	}
	if got := problems(); len(got) != 1 {
		t.Errorf("problems are about %v", got)
	}
}
