package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// envoyAlone ends everything and starts Envoy with the same configuration in one file and
// no control plane: sooner than that, no control plane can bring it back.
func (w *workload) envoyAlone(ctx context.Context) (err error) {
	pid, err := w.envoyPID()
	if err != nil {
		return err
	}
	binary, err := envoyBinary(pid)
	if err != nil {
		return err
	}
	text, err := w.bootstrap()
	if err != nil {
		return err
	}
	file := filepath.Join(w.root, "alone.pb")
	if err := errors.Join(os.WriteFile(file, text, 0o600), w.kill(), syscall.Kill(pid, syscall.SIGKILL)); err != nil {
		return err
	}
	began := time.Now()
	alone, err := w.startEnvoy(binary, file, filepath.Join(w.root, "alone.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.stop()) }()
	if err := alone.serves(ctx, w.address(), w.entries[len(w.entries)-1].host()); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	used, err := processCPU(alone.pid())
	if err != nil {
		return err
	}
	w.add(envoyAlone, "seconds", took)
	w.add(envoyAlone, "envoy_cpu_ms", milliseconds(used))
	if killed, ok := w.report.value(envoyKilled, w.routes, "seconds"); ok {
		w.add(envoyKilled, "over_alone", killed/took)
	}
	return nil
}

// bootstrap returns a bootstrap with all that the pipeline makes of the entries.
func (w *workload) bootstrap() ([]byte, error) {
	b, err := newInProcess(w.log, w.report, w.changes, "")
	if err != nil {
		return nil, err
	}
	p := newPipeline(w.port - listenerPort)
	updates, err := p.change(b.inventory(p, w.entries))
	if err != nil {
		return nil, err
	}
	bodies := map[envoy.Type]map[string][]byte{}
	for _, u := range updates {
		for _, r := range u.Set {
			if bodies[r.Type] == nil {
				bodies[r.Type] = map[string][]byte{}
			}
			bodies[r.Type][r.Name] = r.Body()
		}
	}
	static := &bootstrapv3.Bootstrap_StaticResources{}
	for name, body := range bodies[envoy.Clusters] {
		c, err := staticCluster(body, bodies[envoy.Endpoints][name])
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
		static.Clusters = append(static.Clusters, c)
	}
	for name, body := range bodies[envoy.Listeners] {
		l, err := staticListener(body, bodies[envoy.Routes], bodies[envoy.Scopes])
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", name, err)
		}
		static.Listeners = append(static.Listeners, l)
	}
	bootstrap, err := w.common()
	if err != nil {
		return nil, err
	}
	bootstrap.StaticResources = static
	return proto.Marshal(bootstrap)
}

// common is what Envoy's bootstrap says of statistics, clusters and the runtime.
func (w *workload) common() (*bootstrapv3.Bootstrap, error) {
	dir, err := w.envoyDir()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "bootstrap.json"))
	if err != nil {
		return nil, err
	}
	var content map[string]json.RawMessage
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	for _, ofTheControlPlane := range []string{"node", "admin", "dynamic_resources", "static_resources", "overload_manager"} {
		delete(content, ofTheControlPlane)
	}
	if text, err = json.Marshal(content); err != nil {
		return nil, err
	}
	b := &bootstrapv3.Bootstrap{}
	return b, protojson.Unmarshal(text, b)
}

// staticCluster returns a cluster with its endpoints.
func staticCluster(body, endpoints []byte) (*clusterv3.Cluster, error) {
	c, load := &clusterv3.Cluster{}, &endpointv3.ClusterLoadAssignment{}
	if err := errors.Join(proto.Unmarshal(body, c), proto.Unmarshal(endpoints, load)); err != nil {
		return nil, err
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	c.EdsClusterConfig, c.LoadAssignment = nil, load
	return c, nil
}

// staticListener returns a listener with its route tables, and the scopes that lead to them.
func staticListener(body []byte, tables, scopes map[string][]byte) (*listenerv3.Listener, error) {
	l := &listenerv3.Listener{}
	if err := proto.Unmarshal(body, l); err != nil {
		return nil, err
	}
	for _, chain := range append(l.FilterChains, l.DefaultFilterChain) {
		for _, filter := range chain.GetFilters() {
			m := &hcmv3.HttpConnectionManager{}
			if err := filter.GetTypedConfig().UnmarshalTo(m); err != nil {
				return nil, err
			}
			if err := staticRoutes(m, tables, scopes); err != nil {
				return nil, err
			}
			for _, f := range m.HttpFilters {
				if d := f.GetConfigDiscovery(); d != nil { // nobody is there to ask
					f.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: d.DefaultConfig}
				}
			}
			config, err := anypb.New(m)
			if err != nil {
				return nil, err
			}
			filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: config}
		}
	}
	return l, nil
}

// staticRoutes puts a connection manager's route tables into it.
func staticRoutes(m *hcmv3.HttpConnectionManager, tables, scopes map[string][]byte) error {
	if m.GetScopedRoutes() == nil {
		table, name := &routev3.RouteConfiguration{}, m.GetRds().GetRouteConfigName()
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: table}
		return proto.Unmarshal(tables[name], table)
	}
	list := &hcmv3.ScopedRouteConfigurationsList{}
	for name, body := range scopes {
		if !strings.HasPrefix(name, m.GetScopedRoutes().GetName()+"/") {
			continue
		}
		scope, table := &routev3.ScopedRouteConfiguration{}, &routev3.RouteConfiguration{}
		if err := errors.Join(proto.Unmarshal(body, scope), proto.Unmarshal(tables[name], table)); err != nil {
			return err
		}
		scope.RouteConfigurationName, scope.RouteConfiguration = "", table
		list.ScopedRouteConfigurations = append(list.ScopedRouteConfigurations, scope)
	}
	m.GetScopedRoutes().RdsConfigSource = nil
	m.GetScopedRoutes().ConfigSpecifier = &hcmv3.ScopedRoutes_ScopedRouteConfigurationsList{ScopedRouteConfigurationsList: list}
	return nil
}
