package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// TestMain lets this binary be the node's first process, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == initCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// A cluster serves who comes from outside by Dial and Start, and leaves nothing
// behind.
func TestUpAndDown(t *testing.T) {
	if os.Getenv("GATEHOUSE_TEST_NODE") == "" {
		t.Skip("set GATEHOUSE_TEST_NODE to bring up a cluster, as root")
	}
	const name = "test-up-and-down"
	t.Setenv("KUBECONFIG", "")
	t.Setenv("GATEHOUSE_CLUSTER", name)
	dir, err := cluster.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := machine(t, dir)
	t.Cleanup(func() {
		if err := down(context.Background(), name, dir); err != nil {
			t.Error(err)
		}
	})
	if err := up(t.Context(), name, dir, "standard"); err != nil {
		t.Fatal(err)
	}
	during := machine(t, dir)
	s, err := cluster.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	family := descendants(t, s.PID)
	if len(family) < 10 || len(during) <= len(before) {
		t.Errorf("%d processes, and no more control groups than before: this test would not see what is left", len(family))
	}

	c, err := cluster.Open()
	if err != nil {
		t.Fatal(err)
	}
	serve(t, c)
	distribute(t, c)
	resolve(t, s.PID)
	if err := up(t.Context(), name, dir, "experimental"); err == nil || !strings.Contains(err.Error(), "standard") {
		t.Errorf("another channel while it runs: %v", err)
	}

	if err := down(t.Context(), name, dir); err != nil {
		t.Fatal(err)
	}
	for process := range family {
		if descendants(t, process.pid)[process] {
			t.Errorf("process %d is left", process.pid)
		}
	}
	after := machine(t, dir)
	for thing := range after {
		if !before[thing] {
			t.Errorf("left behind: %s", thing)
		}
	}
	if _, err := cluster.Open(); !errors.Is(err, cluster.ErrNone) {
		t.Errorf("Open after down: %v", err)
	}
	if err := down(t.Context(), name, dir); err != nil {
		t.Errorf("down of nothing: %v", err)
	}
}

// serve has a Service answer at its load balancer's address, to this process and
// to a program.
func serve(t *testing.T, c *cluster.Cluster) {
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const address = "198.19.0.250"
	meta := metav1.ObjectMeta{Name: "echo", Namespace: "default", Labels: map[string]string{"app": "echo"}}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "echo", Image: echoImages[0]}}}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: address, Selector: meta.Labels,
		Ports: []corev1.ServicePort{{Port: 3000}},
	}}
	err = retry(t.Context(), func() error { // its ServiceAccount comes by and by
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: c.Dial}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = retry(ctx, func() error {
		_, err := hello(web, address)
		return err
	})
	if err != nil {
		t.Errorf("the Service's address: %v", err)
	}
	outside := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	if body, err := hello(outside, address); err == nil {
		t.Errorf("the cluster can be reached from outside: %s", body)
	}
	if out, err := inside(t.Context(), c.Dir, "kubectl", "get", "nodes", "-o", "name"); err != nil || out != "node/"+nodeName {
		t.Errorf("kubectl get nodes: %q, %v", out, err)
	}
}

// distribute has many Services made at once, each of which gets an address of its own.
func distribute(t *testing.T, c *cluster.Cluster) {
	config, err := c.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	services := client.CoreV1().Services("default")
	const many = 16
	for round := range 5 {
		var group errgroup.Group
		for i := range many {
			group.Go(func() error {
				_, err := services.Create(t.Context(), &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("at-once-%d-%d", round, i)},
					Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
				}, metav1.CreateOptions{})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = retry(ctx, func() error {
		list, err := services.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		of := map[string]string{}
		for _, s := range list.Items {
			switch has := s.Status.LoadBalancer.Ingress; {
			case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
			case len(has) == 0:
				return fmt.Errorf("%s has no address yet", s.Name)
			case of[has[0].IP] != "":
				t.Errorf("%s and %s both have %s", s.Name, of[has[0].IP], has[0].IP)
			default:
				of[has[0].IP] = s.Name
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// resolve sees that pods ask the cluster's DNS.
func resolve(t *testing.T, pid int) {
	for p := range descendants(t, pid) {
		proc := fmt.Sprintf("/proc/%d/", p.pid)
		if name, _ := os.ReadFile(proc + "cmdline"); !strings.HasPrefix(string(name), "/usr/local/bin/echo-basic") {
			continue
		}
		config, err := os.ReadFile(proc + "root/etc/resolv.conf")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(config), "nameserver "+dnsService) {
			t.Errorf("the pod's resolv.conf is %s", config)
		}
		return
	}
	t.Error("no process of the pod")
}

// hello asks the Service, and wants its own answer.
func hello(client *http.Client, address string) (string, error) {
	response, err := client.Get("http://" + address + ":3000/hello")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(body), `"path": "/hello"`) {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// machine is what a cluster could leave: mounts, interfaces, control groups,
// entries of directories that programs like to write to.
func machine(t *testing.T, dir string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		all["mount "+strings.Fields(line)[4]] = true
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		all["interface "+i.Name] = true
	}
	roots, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		_ = filepath.WalkDir(filepath.Join(root, controlGroup(dir)), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				all["control group "+path] = true
			}
			return nil
		})
	}
	nodes, err := cluster.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"/", "/etc", "/opt", "/run", "/run/netns", "/usr/libexec", "/var/lib", "/var/log", "/var/log/pods", nodes} {
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "cni-") { // another cluster's pods may come meanwhile
				all["file "+filepath.Join(parent, e.Name())] = true
			}
		}
	}
	return all
}

type process struct {
	pid   int
	start string // tells it from a later one with the same number
}

// descendants are a process and all below it.
func descendants(t *testing.T, pid int) map[process]bool {
	t.Helper()
	parents, starts := map[int]int{}, map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		_, rest, _ := strings.Cut(string(data), ") ") // the name before it may have spaces
		fields := strings.Fields(rest)
		if fields[0] == "Z" {
			continue
		}
		id, _ := strconv.Atoi(strings.Split(path, "/")[2])
		parents[id], _ = strconv.Atoi(fields[1])
		starts[id] = fields[19]
	}
	all := map[process]bool{}
	for _, id := range slices.Collect(maps.Keys(parents)) {
		for up := id; up != 0; up = parents[up] {
			if up == pid {
				all[process{id, starts[id]}] = true
			}
		}
	}
	return all
}

func TestAddresses(t *testing.T) {
	service := func(wanted string, has ...string) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: wanted}}
		for _, ip := range has {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		return s
	}
	internal := service("", "198.19.0.1")
	internal.Spec.Type = corev1.ServiceTypeClusterIP
	foreign := service("")
	foreign.Spec.LoadBalancerClass = new("example.com/other")
	for name, test := range map[string]struct {
		service *corev1.Service
		want    string // "" for no address
		write   bool
	}{
		"the next free one":             {service(""), "198.19.0.3", true},
		"the one that it asks for":      {service("198.19.0.250"), "198.19.0.250", true},
		"it has one":                    {service("", "198.19.0.1"), "", false},
		"it asks for another":           {service("198.19.0.250", "198.19.0.1"), "198.19.0.250", true},
		"one that is taken":             {service("198.19.0.2"), "", false},
		"one that is taken, it has one": {service("198.19.0.2", "198.19.0.1"), "", true},
		"no longer of the type":         {internal, "", true},
		"of another class":              {foreign, "", false},
	} {
		taken := map[string]bool{"198.19.0.1": true, "198.19.0.2": true}
		ingress, write := (&balancer{}).ingress(test.service, taken)
		got := ""
		if len(ingress) > 0 {
			got = ingress[0].IP
		}
		if got != test.want || write != test.write {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, write, test.want, test.write)
		}
	}
	all := map[string]bool{}
	for range 300 {
		if ip := free(all); ip != "" {
			all[ip] = true
		}
	}
	if len(all) != 191 || all["198.19.0.250"] {
		t.Errorf("%d addresses, want 191, and those above left to who asks", len(all))
	}
}
