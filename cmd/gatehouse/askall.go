package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

// askFlags say who is asked about proxies, and of which Gateways.
type askFlags struct {
	cluster     clusterFlags
	stateDir    string
	gateway     string
	controllers string // namespace
	adminPort   int
	addresses   []string
}

func (f *askFlags) define(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.gateway, "gateway", "", "only one Gateway, by name or NAMESPACE/NAME")
	fl.StringVar(&f.controllers, "controller-namespace", "gatehouse-system", "namespace of the controllers")
	boundedVar(fl, &f.adminPort, "admin-port", 19000, 1, 65535, "port of the controllers' admin interface")
	fl.StringArrayVar(&f.addresses, "controller", nil, "HOST:PORT of the admin interface of a controller that runs outside of the cluster, on this host; repeatable")
	defineStateDir(cmd, &f.stateDir)
	f.cluster.define(fl)
	exceptCluster(cmd, "state-dir")
	cmd.MarkFlagsMutuallyExclusive("state-dir", "controller")
}

// askSource is who knows of proxies: the controllers of a cluster, or the process that runs here.
type askSource struct {
	find      func(context.Context) ([]asker, error) // nil where the same are asked all the time
	found     time.Time
	askers    []asker
	client    kubernetes.Interface // nil where there is no cluster
	namespace string               // to show; empty for all
	gateway   string               // to show, a name or namespace/name; empty for all
}

// asker asks a controller.
type asker struct {
	name   string
	client *http.Client
}

func (f *askFlags) source(cmd *cobra.Command) (*askSource, error) {
	if len(f.addresses) == 0 && !f.cluster.asked(cmd) {
		socket, err := adminSocket(f.stateDir)
		if err == nil {
			name := "the gatehouse with the state directory " + filepath.Dir(socket)
			return &askSource{gateway: f.gateway, askers: []asker{{name, adminClient(func(ctx context.Context) (net.Conn, error) {
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
	s := &askSource{gateway: f.gateway}
	if s.namespace, _, err = config.Namespace(); err != nil {
		return nil, fmt.Errorf("choose a namespace: %w", err)
	}
	if ns, _, ok := strings.Cut(f.gateway, "/"); ok {
		s.namespace = ns
	} else if f.cluster.all {
		s.namespace = ""
	}
	if s.client, err = kubernetes.NewForConfig(to); err != nil {
		return nil, err
	}
	for _, address := range f.addresses {
		s.askers = append(s.askers, asker{"the controller at " + address, adminClient(func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		})})
	}
	if len(f.addresses) == 0 {
		s.find = func(ctx context.Context) ([]asker, error) { return s.controllers(ctx, to, f.controllers, f.adminPort) }
	}
	return s, nil
}

// isOf reports whether a Gateway is one of those that are to be shown.
func (s *askSource) isOf(gateway string) bool {
	ns, name, _ := strings.Cut(gateway, "/")
	if strings.Contains(s.gateway, "/") {
		return gateway == s.gateway
	}
	return (s.namespace == "" || ns == s.namespace) && (s.gateway == "" || name == s.gateway)
}

// controllerPods are those of the chart.
const controllerPods = "app.kubernetes.io/name=gatehouse,app.kubernetes.io/component=controller"

// controllers finds those that run. One that was known goes on being asked over its connection.
func (s *askSource) controllers(ctx context.Context, to *rest.Config, namespace string, port int) (out []asker, err error) {
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: controllerPods})
	if err != nil {
		return nil, fmt.Errorf("find the controllers in namespace %s (--controller-namespace names another): %w", namespace, err)
	}
	known := map[string]asker{}
	for _, a := range s.askers {
		known[a.name] = a
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		a, ok := known["controller "+pod.Name]
		if !ok {
			a = asker{"controller " + pod.Name, adminClient(func(context.Context) (net.Conn, error) {
				return dialPod(to, namespace, pod.Name, port)
			})}
		}
		delete(known, a.name)
		out = append(out, a)
	}
	for _, a := range known {
		a.client.CloseIdleConnections()
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no controller runs in namespace %s: name theirs with --controller-namespace", namespace)
	}
	return out, nil
}

// findInterval is how often it is looked which controllers there are while changes are shown.
const findInterval = 10 * time.Second

// askAll asks all at the same time, and returns the answers by who has given them. Who can't be asked is
// told, unless nobody can be. Who calls bounds the time.
func askAll[T any](ctx context.Context, s *askSource, path string, tell *told) (map[string]T, error) {
	if s.find != nil && time.Since(s.found) > findInterval {
		askers, err := s.find(ctx)
		switch {
		case err == nil:
			s.askers, s.found = askers, time.Now()
		case len(s.askers) == 0:
			return nil, err
		default:
			tell.tell(err.Error())
		}
	}
	type answer struct {
		name  string
		value T
		err   error
	}
	answers := make(chan answer, len(s.askers))
	for _, a := range s.askers {
		go func() {
			var value T
			err := a.ask(ctx, path, &value)
			answers <- answer{a.name, value, err}
		}()
	}
	out, failed := map[string]T{}, []error{}
	for range s.askers {
		if a := <-answers; a.err != nil {
			failed = append(failed, fmt.Errorf("%s can't be asked: %w", a.name, a.err))
		} else {
			out[a.name] = a.value
		}
	}
	if len(failed) > 0 {
		s.found = time.Time{} // it may be gone, and another one there
	}
	if len(out) == 0 {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		tell.tell(err.Error())
	}
	return out, nil
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
	maps.DeleteFunc(t.last, func(_ string, at time.Time) bool { return time.Since(at) > toldAgain })
	t.last[text] = time.Now()
	fmt.Fprintln(t.w, text)
}
