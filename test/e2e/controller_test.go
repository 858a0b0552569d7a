//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// What config/install.yaml installs.
const (
	controllerNamespace = "gatehouse-system"
	controllerAccount   = "gatehouse"
)

// controllers is an API server, and processes of `gatehouse controller` with the rights
// of the manifest.
type controllers struct {
	client.Client
	server     *apiserver.Server
	kubeconfig string
	dir        string // of configuration files
}

// startControllers starts an API server with what some manifests install.
func startControllers(t *testing.T, manifests ...string) *controllers {
	t.Helper()
	needTools(t)
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	for _, file := range manifests {
		apiserver.Install(t, server.Config, file)
	}
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
	return &controllers{
		Client: c, server: server, dir: t.TempDir(),
		kubeconfig: accountKubeconfig(t, server, controllerNamespace, controllerAccount),
	}
}

// controllerPorts are free ones, for a process that shares a machine with others.
type controllerPorts struct {
	XDS     int `json:"xds"`
	API     int `json:"api"`
	Metrics int `json:"metrics"`
	Health  int `json:"health"`
}

func freePorts(t *testing.T) controllerPorts {
	return controllerPorts{XDS: port.OfTest(t), API: port.OfTest(t), Metrics: port.OfTest(t), Health: port.OfTest(t)}
}

// create has the API server know objects.
func (c *controllers) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// configure writes a configuration file that has these fields, the way an editor does.
func (c *controllers) configure(t *testing.T, name string, fields map[string]any) (path string) {
	t.Helper()
	all := map[string]any{
		"apiVersion": "config.gatehouse.dev/v1alpha1", "kind": "Configuration",
		"leaderElection": map[string]any{"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"},
	}
	maps.Copy(all, fields)
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(c.dir, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// controller is a process of `gatehouse controller`.
type controller struct {
	*exec.Cmd
	log  output.Buffer
	done chan struct{}
}

// run starts a controller, for the time of the test at most.
func (c *controllers) run(t *testing.T, environment []string, args ...string) *controller {
	t.Helper()
	p := &controller{done: make(chan struct{})}
	p.Cmd = exec.Command(needTools(t).gatehouse, append([]string{"controller", "--kubeconfig", c.kubeconfig, "--admin", ""}, args...)...)
	p.Env = append(os.Environ(), "POD_NAMESPACE="+controllerNamespace, "POD_NAME=controller-0", "POD_IP=127.0.0.1")
	p.Env = append(p.Env, environment...)
	p.Stdout, p.Stderr = &p.log, &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.Wait() }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		p.ofComponents(t)
		if t.Failed() {
			t.Logf("gatehouse controller:\n%s", p.log.Tail(60))
		}
	})
	return p
}

// told waits for an Event of a controller's pod.
func (c *controllers) told(t *testing.T, reason, text string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace(controllerNamespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == "controller-0" && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("no Event %s of the pod among %d", reason, len(list.Items))
	})
}

// ofComponents checks that each line of the log says of which component it is, by whose name its level can be set.
func (p *controller) ofComponents(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		var fields struct {
			Component configuration.Component `json:"component"`
		}
		if json.Unmarshal([]byte(line), &fields) == nil && !slices.Contains(configuration.Components, fields.Component) {
			t.Errorf("a line of the log is of no component: %s", line)
		}
	}
}

// answers waits until a path of a port on this host answers with 200.
func (p *controller) answers(t *testing.T, port int, path string) {
	t.Helper()
	web := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually(t, readyTimeout, func() error {
		select {
		case <-p.done:
			return permanent(fmt.Errorf("the controller has ended: %s", p.ProcessState))
		default:
		}
		res, err := web.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + path)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(path + ": " + res.Status)
		}
		return nil
	})
}

// says waits for a text in the log.
func (p *controller) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		if !strings.Contains(p.log.String(), text) {
			return fmt.Errorf("the log has no %q", text)
		}
		return nil
	})
}

// ends waits for the end of the process.
func (p *controller) ends(t *testing.T) (code int) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		t.Fatal("the controller does not end")
	}
	return p.ProcessState.ExitCode()
}

// stop ends the process as the kubelet does.
func (p *controller) stop(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.ends(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := p.log.String(); strings.Contains(log, "forbidden") {
		t.Errorf("a right is missing:\n%s", log)
	}
}

// makeClass makes a class, and gives the controllers the right to its controllerName, as the
// chart does for the one that it is told.
func (c *controllers) makeClass(t *testing.T, name, controllerName string) {
	t.Helper()
	class := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.ControllerName = gwv1.GatewayController(controllerName)
	claim := metav1.ObjectMeta{Namespace: configuration.ClaimNamespace, Name: "claim-" + name}
	for _, o := range []client.Object{
		class,
		&rbacv1.Role{ObjectMeta: claim, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{configuration.ClaimName(controllerName)}, Verbs: []string{"get", "update"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: claim, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: claim.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: controllerNamespace, Name: "gatehouse"}},
		},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *controllers) accepted(ctx context.Context, class string) error {
	o := &gwv1.GatewayClass{}
	if err := c.Get(ctx, client.ObjectKey{Name: class}, o); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(o.Status.Conditions, "Accepted") {
		return fmt.Errorf("GatewayClass %s: %+v", class, o.Status.Conditions)
	}
	return nil
}

// TestController protects what an administrator does with the command: it serves by its
// file, with what variables and flags lay over it, takes up another file, keeps the last
// good one, and tells by its exit code how it has ended.
func TestController(t *testing.T) {
	t.Parallel()
	c := startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml")

	t.Run("by a file", func(t *testing.T) {
		ports := freePorts(t)
		p := c.run(t, nil, "--config", c.configure(t, "file.yaml", map[string]any{"ports": ports, "log": map[string]any{"format": "text"}}))
		p.answers(t, ports.Health, "/healthz")
		p.answers(t, ports.Health, "/readyz")
		p.answers(t, ports.Metrics, "/metrics")
		eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "gatehouse") })
		p.says(t, "controller_name=gatehouse.dev/controller")

		second := c.run(t, nil, "--config", filepath.Join(c.dir, "file.yaml"))
		if code := second.ends(t); code != 1 {
			t.Errorf("exit code %d where the ports are taken", code)
		}
		second.says(t, "address already in use")
		p.stop(t)
	})

	t.Run("flag over environment over file", func(t *testing.T) {
		for _, from := range []string{"file", "variable", "flag"} {
			c.makeClass(t, from, "example.com/"+from)
		}
		ports := freePorts(t)
		file := c.configure(t, "overlaid.yaml", map[string]any{
			"ports": ports, "controllerName": "example.com/file", "log": map[string]any{"format": "text", "level": "error"},
		})
		p := c.run(t, []string{"GATEHOUSE_CONFIG=" + file, "GATEHOUSE_CONTROLLER_NAME=example.com/variable", "GATEHOUSE_LOG_LEVEL=info", "GATEHOUSE_LOG_FORMAT=nonsense"},
			"--log-format", "json")
		eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "variable") })
		p.says(t, `"controller_name":"example.com/variable"`)
		p.stop(t)

		p = c.run(t, []string{"GATEHOUSE_CONTROLLER_NAME=example.com/variable"}, "--config", file, "--controller-name", "example.com/flag")
		eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "flag") })
		p.stop(t)
		if c.accepted(t.Context(), "file") == nil {
			t.Error("the class of the file's controllerName was served")
		}
	})

	t.Run("reload", func(t *testing.T) {
		for _, name := range []string{"one", "two"} {
			c.makeClass(t, name, "example.com/"+name)
		}
		ports, others := freePorts(t), freePorts(t)
		file := c.configure(t, "reload.yaml", map[string]any{"ports": ports, "controllerName": "example.com/one"})
		p := c.run(t, []string{"GATEHOUSE_LOG_FORMAT=text"}, "--config", file)
		p.answers(t, ports.Health, "/readyz")
		eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "one") })

		c.configure(t, "reload.yaml", map[string]any{"ports": others, "controllerName": "example.com/two", "log": map[string]any{"level": "loud"}})
		p.says(t, "the changed configuration is not used; the last good one stays in force")
		p.says(t, "log.level")
		p.answers(t, ports.Health, "/readyz")
		c.told(t, "ConfigurationInvalid", "log.level")

		c.configure(t, "reload.yaml", map[string]any{"ports": ports, "controllerName": "example.com/one", "log": map[string]any{"level": "debug"}})
		p.says(t, "only levels of logs may have changed")
		c.told(t, "ConfigurationValid", "in force")

		c.configure(t, "reload.yaml", map[string]any{"ports": others, "controllerName": "example.com/two"})
		p.answers(t, others.Health, "/readyz")
		eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "two") })
		if err := listenOn(t, ports.Health).Close(); err != nil {
			t.Errorf("the former port: %v", err)
		}
		if log := p.log.String(); strings.Contains(log, `{"time":`) {
			t.Errorf("the variable no longer counts:\n%s", log)
		}
		p.stop(t)
	})
}
