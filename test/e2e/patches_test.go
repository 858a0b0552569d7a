//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// addsHeader are operations that add a filter which sets a header of answers.
const addsHeader = `[{op: add, path: /filter_chains/0/filters/0/typed_config/http_filters/-, value: {name: edge, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "function envoy_on_response(h) h:headers():add('x-edge', 'yes') end"}}}}]`

// TestEnvoyPatches protects those whose wish has no field: patches of listeners are in force on the real Envoy; what can't be
// applied, or is refused by Envoy, is told and costs nothing that serves; and no patch takes away what guards.
func TestEnvoyPatches(t *testing.T) {
	t.Parallel()
	patched := func(name, operations string) map[string]string {
		return parametersFor(fmt.Sprintf("envoy: {patches: [{type: Listener, name: %q, operations: %s}]}", name, operations))
	}
	manifests := patched("http-80*", addsHeader)
	manifests["guard.yaml"] = authPolicy("robots", onHome, needsKeys) + keysSecret("keys", "ann", "of-ann")
	manifests["open.yaml"] = siteRoute("open", "open.example", "v1")
	s := newSite(t, manifests, "--allow-unsafe-parameters")
	s.says(t, "Gateway gw", "All patches of spec.envoy.patches are in force")
	const open = "http://open.example/"
	edge := func(want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			o, err := s.call(open)
			if err != nil {
				return err
			}
			if got := o.headers.Get("x-edge"); o.status != http.StatusOK || got != want {
				return fmt.Errorf("%d, x-edge is %q, want %q", o.status, got, want)
			}
			return nil
		})
	}
	edge("yes")
	s.answers(t, homeURL, http.StatusUnauthorized)
	s.answers(t, homeURL+"?key=of-ann", http.StatusOK)

	write := func(name, operations string) {
		t.Helper()
		for file, text := range patched(name, operations) {
			s.write(t, file, text)
		}
	}
	// The filters that guard, and what decides who a client is, stay.
	for what, operations := range map[string]string{
		"a patch can't remove http_filters":          "[{op: remove, path: /filter_chains/0/filters/0/typed_config/http_filters/0}]",
		"a patch can't change http_filters[0]":       "[{op: add, path: /filter_chains/0/filters/0/typed_config/http_filters/0/disabled, value: true}]",
		"a patch can't change xff_num_trusted_hops":  "[{op: add, path: /filter_chains/0/filters/0/typed_config/xff_num_trusted_hops, value: 3}]",
		"a patch can't change address of a listener": "[{op: replace, path: /address/socket_address/port_value, value: 1}]",
		"a patch can't add or remove filter_chains":  "[{op: copy, from: /filter_chains/0, path: /filter_chains/-}]",
		"a patch can't change default_filter_chain":  "[{op: copy, from: /filter_chains/0, path: /default_filter_chain}]",
		`unknown field "servername"`:                 "[{op: add, path: /servername, value: x}]",
		"is for no listener of the Gateway":          "[{op: remove, path: /stat_prefix}]",
	} {
		name := "http-80*"
		if operations == "[{op: remove, path: /stat_prefix}]" {
			name = "https*"
		}
		write(name, operations)
		s.says(t, "Gateway gw", what)
		edge("")
		s.answers(t, homeURL, http.StatusUnauthorized)
	}
	write("http-80*", "{op: remove}")
	s.says(t, "Gateway gw", "operations are no list of RFC 6902")
	s.answers(t, open, http.StatusOK)

	// What Envoy refuses leaves the last listener in force, and Envoy's words in the status.
	write("http-80*", addsHeader)
	edge("yes")
	write("http-80*", `[{op: add, path: /filter_chains/0/filters/0/typed_config/http_filters/-, value: {name: edge, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "function ("}}}}]`)
	s.says(t, "Gateway gw", "script load error")
	edge("yes")
	s.answers(t, homeURL, http.StatusUnauthorized)
}

// TestPatchedHosts protects patches of virtual hosts and clusters, with before and after of each, and that they change nothing else.
func TestPatchedHosts(t *testing.T) {
	t.Parallel()
	header := `[{op: add, path: /response_headers_to_add, value: [{header: {key: x-tenant, value: gold}}]}]`
	manifests := parametersFor(fmt.Sprintf(`envoy: {patches: [
		{type: VirtualHost, name: home.example, operations: %s},
		{type: VirtualHost, name: "*", operations: [{op: remove, path: /routes/0}]},
		{type: Cluster, name: "*", operations: [{op: add, path: /connect_timeout, value: 3s}]},
		{type: Cluster, name: none, operations: [{op: remove, path: /name}]}]}`, header))
	manifests["open.yaml"] = siteRoute("open", "open.example", "v1")
	s := newSite(t, manifests, "--allow-unsafe-parameters")
	s.tenant(t, "home.example", "v1", "gold")
	s.tenant(t, "open.example", "v1", "")
	s.says(t, "Gateway gw", "spec.envoy.patches[1] has no effect on virtual host home.example: routes can't be added or removed")
	s.says(t, "Gateway gw", "spec.envoy.patches[3] is for no cluster of the Gateway: none has the name none")
	out, err := exec.Command(s.gatehouse, "translate", s.dir, "-o", "xds", "--allow-unsafe-parameters").CombinedOutput() //nolint:gosec // the test's own
	for _, want := range []string{"type: virtual host", "- spec.envoy.patches[0]", "connectTimeout: 3s", "before:", "after:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("translate prints no %q: %v\n%s", want, err, out)
		}
	}
}
