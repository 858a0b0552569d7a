package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Admin is the admin interface. It has no authentication: it is to be served on
// loopback or on a private Unix socket only.
type Admin struct {
	Pipeline *pipeline.Pipeline
	Server   *xds.Server
	View     func() view.View
	Troubled func() map[view.Trouble]int
	Ready    http.HandlerFunc
	// Replica names this process beside others; empty where there are none.
	Replica string
	// Processes are the proxies that this process has started; nil where others do that.
	Processes func() []fleet.Pod
	More      []prometheus.Collector // of what runs beside these
}

// Collectors are the metrics of a pipeline and its xDS server.
func (a Admin) Collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{
		tableCollector{a.Pipeline.Engine}, tenantCollector{a.Pipeline}, certificateCollector{a.Pipeline}, troubleCollector{a.Troubled},
	}, a.Server.Collectors(), a.More)
}

// Handler serves it.
func (a Admin) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(a.Collectors()...)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.Ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.View()) })
	mux.HandleFunc("GET /policies", a.policies)
	mux.HandleFunc("GET /topology", a.topology)
	mux.HandleFunc("GET /proxies", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Proxies()) })
	mux.HandleFunc("GET /proxies/config", a.proxyConfig)
	mux.HandleFunc("GET /figures", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Server.Figures()) })
	mux.HandleFunc("GET /debug/tables", a.debugTables)
	mux.HandleFunc("GET /debug/tables/{name}", a.debugTable)
	mux.HandleFunc("GET /debug/xds", a.debugXDS)
	mux.HandleFunc("GET /debug/fallback", a.debugFallback)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "gatehouse admin\n\n"+
			"/healthz        the process runs\n"+
			"/readyz         the first configuration is in force\n"+
			"/metrics        Prometheus metrics\n"+
			"/status         all objects with their status, as JSON\n"+
			"/policies       what is in force for ?group=&kind=&namespace=&name=&section=\n"+
			"/topology       a drawing, of ?group=&kind=&namespace=&name= or of all\n"+
			"/proxies        what each connected proxy has and lacks, as JSON\n"+
			"/proxies/config what one of them has, of ?gateway=NS/NAME&pod=&type=&resources=true\n"+
			"/figures        what proxies have counted of each route, as JSON\n"+
			"/debug/tables   the tables of the pipeline; /debug/tables/NAME prints one\n"+
			"/debug/xds      proxies' sessions and what each was sent\n"+
			"/debug/fallback what is in force in place of what is wanted, and because of which objects\n"+
			"/debug/pprof/   Go profiles\n")
	})
	return localOnly(mux)
}

// localOnly refuses requests for hosts other than this one: a web page whose name
// was made to resolve to 127.0.0.1 must not read what is here (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
			next.ServeHTTP(w, r)
			return
		}
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "the admin interface answers requests for localhost only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // a client that went away is no news
}

// policies says what is in force for an object.
func (a Admin) policies(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, view.InForceFor(a.Pipeline, named(r), r.URL.Query().Get("section")))
}

// Proxies says how each proxy is that this process knows.
func (a Admin) Proxies() fleet.List {
	list := fleet.Of(a.Replica, a.Server.Sessions(), a.refusedObjects)
	if a.Processes != nil {
		list.Proxies = fleet.Join([]fleet.List{list}, a.Processes())
	}
	list.Namespace = a.Pipeline.Options.Places.Namespace
	return list
}

func (a Admin) refusedObjects(gateway string, r xds.Rejected) []string {
	name, _ := object.ParseName(gateway)
	return a.Pipeline.RefusedObjects(name, r)
}

// fallback is what is in force in place of what is wanted.
type fallback struct {
	Triggered bool           `json:"triggered"` // there is some
	Objects   []refusedEdit  `json:"objects"`   // of which an earlier version is in force
	Resources []xds.Fallback `json:"resources"` // that proxies have refused
}

// refusedEdit is an object whose newest version can't be used.
type refusedEdit struct {
	Object string    `json:"object"`
	Why    string    `json:"why"`
	Since  time.Time `json:"since,omitzero"` // zero if it was so when this process started
}

func (a Admin) debugFallback(w http.ResponseWriter, _ *http.Request) {
	f := fallback{Objects: []refusedEdit{}, Resources: a.Server.Fallbacks(a.refusedObjects)}
	v := a.View()
	for i := range v.Items {
		if s := &v.Items[i].Summary; s.RefusedEdit != "" {
			f.Objects = append(f.Objects, refusedEdit{v.Items[i].Key(), s.RefusedEdit, s.RefusedSince})
		}
	}
	f.Triggered = len(f.Objects)+len(f.Resources) > 0
	writeJSON(w, f)
}

// proxyConfig says what one proxy has, resource by resource.
func (a Admin) proxyConfig(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	gateway, _ := object.ParseName(q.Get("gateway"))
	loaded, ok := a.Server.LoadedBy(gateway, q.Get("pod"))
	if !ok {
		http.Error(w, "no such proxy is connected to this process", http.StatusNotFound)
		return
	}
	if of := q.Get("type"); of != "" {
		loaded = slices.DeleteFunc(loaded, func(h xds.Loaded) bool { return h.Type != of })
	}
	if q.Get("differing") == "true" {
		loaded = slices.DeleteFunc(loaded, func(h xds.Loaded) bool { return h.State == xds.LoadedCurrent })
	}
	if q.Get("resources") == "true" {
		for i := range loaded {
			if err := loaded[i].Print(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
	}
	writeJSON(w, xds.LoadedConfig{Gateway: gateway.String(), Pod: q.Get("pod"), At: time.Now(), Resources: loaded})
}

// topology draws what is above and below an object, or all of a namespace.
func (a Admin) topology(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, view.DrawnOf(a.Pipeline, named(r), r.URL.Query().Get("namespace")))
}

// named is the object that a request is about; zero for none.
func named(r *http.Request) object.Key {
	q := r.URL.Query()
	if q.Get("kind") == "" {
		return object.Key{}
	}
	return object.Key{
		Kind: object.KindOf(q.Get("group"), q.Get("kind")), Name: object.Name{Namespace: q.Get("namespace"), Name: q.Get("name")},
	}
}

func (a Admin) debugTables(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "%-24s %10s %10s %10s %8s %8s %12s\n", "TABLE", "ENTRIES", "RUNS", "CHANGES", "FAILURES", "FAILING", "TIME")
	for _, t := range a.Pipeline.Engine.Stats() {
		fmt.Fprintf(w, "%-24s %10d %10d %10d %8d %8d %12s\n", t.Table, t.Entries, t.Runs, t.Changes, t.Panics, t.Failing, t.Spent)
	}
}

// maxDump bounds what /debug/tables/NAME prints.
const maxDump = 10_000

// debugTable prints a table's entries. Values that may hold what nobody should
// read, the Secrets themselves, are not printed.
func (a Admin) debugTable(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	entries, ok := a.Pipeline.Engine.Dump(name)
	if !ok {
		http.Error(w, "no table is named "+name+"; /debug/tables lists them", http.StatusNotFound)
		return
	}
	n := 0
	for k, v := range entries {
		if n++; n > maxDump {
			fmt.Fprintf(w, "# only the first %d entries are printed\n", maxDump)
			return
		}
		fmt.Fprintf(w, "%v:\n", k)
		if strings.Contains(strings.ToLower(name), "secret") {
			fmt.Fprintln(w, "  [redacted]")
			continue
		}
		text, err := yaml.Marshal(v)
		if err != nil || string(text) == "{}\n" && reflect.ValueOf(v).Kind() == reflect.Pointer {
			text = []byte(fmt.Sprintf("%+v\n", v))
		}
		fmt.Fprintln(w, "  "+strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n  "))
	}
}

// tableCollector exposes the engine's counters: sums, since the names of tables mean nothing
// to whoever runs Gatehouse. /debug/tables has them one by one.
type tableCollector struct{ engine *flow.Engine }

var (
	computations        = prometheus.NewDesc("gatehouse_computations_total", "Functions that were run because something that they depend on has changed.", nil, nil)
	computationSeconds  = prometheus.NewDesc("gatehouse_computation_seconds_total", "Time spent in them.", nil, nil)
	computationFailures = prometheus.NewDesc("gatehouse_computation_failures_total", "Functions that failed and kept their last result. Anything but 0 is a defect to report.", nil, nil)
	computationsFailing = prometheus.NewDesc("gatehouse_computations_failing", "Results that stand failed. While there are any, Gateways that may depend on them are sent nothing but endpoints.", nil, nil)
)

func (c tableCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c tableCollector) Collect(ch chan<- prometheus.Metric) {
	var runs, seconds, failures, failing float64
	for _, t := range c.engine.Stats() {
		runs += float64(t.Runs)
		seconds += t.Spent.Seconds()
		failures += float64(t.Panics)
		failing += float64(t.Failing)
	}
	ch <- prometheus.MustNewConstMetric(computations, prometheus.CounterValue, runs)
	ch <- prometheus.MustNewConstMetric(computationSeconds, prometheus.CounterValue, seconds)
	ch <- prometheus.MustNewConstMetric(computationFailures, prometheus.CounterValue, failures)
	ch <- prometheus.MustNewConstMetric(computationsFailing, prometheus.GaugeValue, failing)
}

// debugXDS prints the proxies' sessions and, with ?gateway=NS/NAME, each
// resource of that Gateway by name and version. It holds no bodies.
func (a Admin) debugXDS(w http.ResponseWriter, r *http.Request) {
	if name := r.URL.Query().Get("gateway"); name != "" {
		gateway, ok := object.ParseName(name)
		info, served := a.Server.Gateway(gateway)
		if !ok || !served {
			http.Error(w, "no Gateway "+name+" is served", http.StatusNotFound)
			return
		}
		writeJSON(w, info)
		return
	}
	gateways := []string{}
	for _, gateway := range a.Server.Gateways() {
		gateways = append(gateways, gateway.String())
	}
	slices.Sort(gateways)
	writeJSON(w, map[string]any{"gateways": gateways, "sessions": a.Server.Sessions()})
}
