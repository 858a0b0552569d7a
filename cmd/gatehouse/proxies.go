package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

type proxiesFlags struct {
	cluster     clusterFlags
	stateDir    string
	output      string
	gateway     string
	watch       bool
	controllers string // namespace
	adminPort   int
	addresses   []string
}

func newProxies() *cobra.Command {
	var f proxiesFlags
	cmd := &cobra.Command{
		Use:   "proxies [-n NAMESPACE | -A] [--gateway [NAMESPACE/]NAME]",
		Short: "Show each proxy: what it has, what it lacks, what it refuses",
		Long: `Show the proxies of Gateways: since when each is connected, a hash of the
configuration that it is to have and of what it has, and what it refuses, with the
object that this is made of. The state is one of Current, Updating, Draining, and of
those to look into: Refused, Behind (for over a minute), Disconnected, NotReady, and
LastGood, for one that goes on with a good version of what another proxy has refused.

In a cluster all controllers are asked, over connections as 'kubectl port-forward'
makes them: who asks needs the right to list pods and to create pods/portforward in
the controllers' namespace. The right to list pods in the Gateways' namespaces adds
nodes, zones, readiness, and the proxies that are not connected. Nothing is written.
Controllers that run elsewhere are named with --controller.

Without a flag for a cluster the 'gatehouse run' that runs here is asked. The exit
code is 1 then when a proxy is not well; of a cluster it tells nothing of that.`,
		Example: `  gatehouse proxies -A
  gatehouse proxies -n shop --gateway web -o wide
  gatehouse proxies -A -w`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (default: a table)")
	fl.StringVar(&f.gateway, "gateway", "", "proxies of one Gateway, by name or NAMESPACE/NAME")
	fl.BoolVarP(&f.watch, "watch", "w", false, "go on, and print the rows that change")
	fl.StringVar(&f.controllers, "controller-namespace", "gatehouse-system", "namespace of the controllers")
	boundedVar(fl, &f.adminPort, "admin-port", 19000, 1, 65535, "port of the controllers' admin interface")
	fl.StringArrayVar(&f.addresses, "controller", nil, "HOST:PORT of the admin interface of a controller that runs outside of the cluster, on this host; repeatable")
	defineStateDir(cmd, &f.stateDir)
	f.cluster.define(fl)
	exceptCluster(cmd, "state-dir")
	cmd.MarkFlagsMutuallyExclusive("state-dir", "controller")
	complete(cmd, "output", "wide", "json", "yaml")
	return cmd
}

// askInterval is how often proxies are asked about while changes are shown.
const askInterval = 500 * time.Millisecond

func (f *proxiesFlags) run(cmd *cobra.Command) error {
	if err := oneOf("output", f.output, "", "wide", "json", "yaml"); err != nil {
		return err
	}
	source, err := f.source(cmd)
	if err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), &told{w: cmd.ErrOrStderr()}
	list, err := source.proxies(cmd.Context(), errs)
	if err != nil {
		return err
	}
	list = f.chosen(list, source.namespace)
	if !f.watch {
		if err := printProxies(out, list, f.output); err != nil {
			return err
		}
		if len(list) == 0 && f.output != "json" && f.output != "yaml" {
			fmt.Fprintln(cmd.ErrOrStderr(), "There are no proxies.")
		}
		if !source.cluster && slices.ContainsFunc(list, func(p fleet.Proxy) bool { return !p.State.IsWell() }) {
			return errFound
		}
		return nil
	}
	print := rowPrinter(out, f.output)
	shown := map[string]fleet.Proxy{}
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		if err := print(changedProxies(shown, list)); err != nil {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-tick.C:
		}
		next, err := source.proxies(cmd.Context(), errs)
		if err != nil {
			if cmd.Context().Err() == nil {
				errs.tell(err.Error())
			}
			continue
		}
		list = f.chosen(next, source.namespace)
	}
}

// changedProxies returns those that differ from what was shown, and those that are gone.
func changedProxies(shown map[string]fleet.Proxy, list []fleet.Proxy) (changed []fleet.Proxy) {
	now := map[string]bool{}
	for _, p := range list {
		k := p.Gateway + " " + p.Pod
		now[k] = true
		before, known := shown[k]
		before.LagSeconds = p.LagSeconds               // it only grows
		if before.Refused != nil && p.Refused != nil { // again the same
			again := *before.Refused
			again.At, before.Refused = p.Refused.At, &again
		}
		if !known || !reflect.DeepEqual(before, p) {
			changed = append(changed, p)
		}
		shown[k] = p
	}
	for k, p := range shown {
		if !now[k] {
			delete(shown, k)
			p.State, p.Draining = fleet.Gone, false
			changed = append(changed, p)
		}
	}
	return changed
}

// chosen leaves the proxies that are asked for.
func (f *proxiesFlags) chosen(list []fleet.Proxy, namespace string) []fleet.Proxy {
	wanted := f.gateway
	if wanted != "" && !strings.Contains(wanted, "/") && namespace != "" {
		wanted = namespace + "/" + wanted
	}
	return slices.DeleteFunc(list, func(p fleet.Proxy) bool {
		ns, name, _ := strings.Cut(p.Gateway, "/")
		switch {
		case wanted == "":
			return namespace != "" && ns != namespace
		case strings.Contains(wanted, "/"):
			return p.Gateway != wanted
		default:
			return name != wanted
		}
	})
}

func printProxies(w io.Writer, list []fleet.Proxy, output string) error {
	if done, err := printed(w, output, map[string]any{"proxies": list}); done {
		return err
	}
	terminal.NewProxyPrinter(w, terminal.Wide(output == "wide")).Print(list)
	return nil
}

// rowPrinter prints proxies as they change: rows, or a document for each.
func rowPrinter(w io.Writer, output string) func([]fleet.Proxy) error {
	table := terminal.NewProxyPrinter(w, terminal.Wide(output == "wide"))
	return func(list []fleet.Proxy) error {
		if output == "" || output == "wide" {
			table.Print(list)
			return nil
		}
		for _, p := range list {
			text, err := json.Marshal(p)
			if output == "yaml" && err == nil {
				text, err = yaml.JSONToYAML(text)
				text = append([]byte("---\n"), text...)
			}
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s\n", strings.TrimRight(string(text), "\n")); err != nil {
				return err
			}
		}
		return nil
	}
}

// told prints each sentence once while it holds.
type told struct {
	w    io.Writer
	mu   sync.Mutex
	last map[string]time.Time
}

// toldAgain is when a sentence is printed again that still holds.
const toldAgain = time.Minute

func (t *told) tell(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]time.Time{}
	}
	if time.Since(t.last[text]) < toldAgain {
		return
	}
	t.last[text] = time.Now()
	fmt.Fprintln(t.w, text)
}

// proxySource is who knows of proxies.
type proxySource struct {
	askers    []asker
	pods      func(context.Context) ([]fleet.Pod, error) // nil where the asker knows
	namespace string                                     // to show; empty for all
	cluster   bool
}

// asker asks a controller.
type asker struct {
	name   string
	client *http.Client
}

func (f *proxiesFlags) source(cmd *cobra.Command) (*proxySource, error) {
	if len(f.addresses) == 0 && !f.cluster.asked(cmd) {
		socket, err := adminSocket(f.stateDir)
		if err == nil {
			name := "the gatehouse with the state directory " + filepath.Dir(socket)
			return &proxySource{askers: []asker{{name, adminClient(func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			})}}}, nil
		}
		if !errors.Is(err, terminal.ErrNotRunning) || !f.cluster.configured() {
			return nil, err
		}
	}
	config := f.cluster.config()
	to, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("choose a cluster: %w", err)
	}
	s := &proxySource{cluster: true}
	if s.namespace, _, err = config.Namespace(); err != nil {
		return nil, fmt.Errorf("choose a namespace: %w", err)
	}
	if ns, _, ok := strings.Cut(f.gateway, "/"); ok {
		s.namespace = ns
	} else if f.cluster.all {
		s.namespace = ""
	}
	client, err := kubernetes.NewForConfig(to)
	if err != nil {
		return nil, err
	}
	s.pods = func(ctx context.Context) ([]fleet.Pod, error) { return fleetPods(ctx, client, s.namespace) }
	for _, address := range f.addresses {
		s.askers = append(s.askers, asker{"the controller at " + address, adminClient(func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		})})
	}
	if len(f.addresses) > 0 {
		return s, nil
	}
	return s, s.findControllers(cmd.Context(), to, client, f.controllers, f.adminPort)
}

// controllerPods are those of the chart.
const controllerPods = "app.kubernetes.io/name=gatehouse,app.kubernetes.io/component=controller"

func (s *proxySource) findControllers(ctx context.Context, to *rest.Config, client kubernetes.Interface, namespace string, port int) error {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: controllerPods})
	if err != nil {
		return fmt.Errorf("find the controllers in namespace %s (--controller-namespace names another): %w", namespace, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		s.askers = append(s.askers, asker{"controller " + pod.Name, adminClient(func(context.Context) (net.Conn, error) {
			return dialPod(to, namespace, pod.Name, port)
		})})
	}
	if len(s.askers) == 0 {
		return fmt.Errorf("no controller runs in namespace %s: name theirs with --controller-namespace", namespace)
	}
	return nil
}

// fleetPods reads the pods of fleets.
func fleetPods(ctx context.Context, client kubernetes.Interface, namespace string) (out []fleet.Pod, err error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: infra.ProxySelector})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		out = append(out, fleet.Pod{
			Gateway: cmp.Or(pod.Annotations[infra.GatewayAnnotation], pod.Namespace+"/"+pod.Labels[infra.GatewayLabel]), Name: pod.Name,
			Node: pod.Spec.NodeName, Zone: pod.Labels[corev1.LabelTopologyZone], Ready: ready, Draining: pod.DeletionTimestamp != nil,
		})
	}
	return out, nil
}

// proxies asks all, at the same time. Who can't be asked is told, unless nobody can be.
func (s *proxySource) proxies(ctx context.Context, tell *told) ([]fleet.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lists, failed := make([]fleet.List, len(s.askers)), make([]error, len(s.askers))
	var pods []fleet.Pod
	var all sync.WaitGroup
	for i, a := range s.askers {
		all.Go(func() {
			if err := a.ask(ctx, "/proxies", &lists[i]); err != nil {
				failed[i] = fmt.Errorf("%s can't be asked: %w", a.name, err)
			}
		})
	}
	if s.pods != nil {
		all.Go(func() {
			var err error
			if pods, err = s.pods(ctx); err != nil && ctx.Err() == nil {
				tell.tell(fmt.Sprintf("Nodes, readiness and proxies that are not connected are not shown: %v", err))
			}
		})
	}
	all.Wait()
	if !slices.Contains(failed, nil) {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		if err != nil {
			tell.tell(err.Error())
		}
	}
	return fleet.Join(lists, pods), nil
}

// ask reads an answer.
func (a asker) ask(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s: it may be of an older version", resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
