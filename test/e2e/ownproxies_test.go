//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/cluster"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// ownProxies is the page that is followed.
const ownProxies = "../../docs/guide/own-proxies.md"

// guide is what a page has in its blocks, in their order.
type guide struct{ yaml, bash, console []string }

func readGuide(t *testing.T, file string) guide {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g guide
	into := map[string]*[]string{"yaml": &g.yaml, "bash": &g.bash, "console": &g.console}
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		language, block, _ := strings.Cut(part, "\n")
		if into[language] == nil {
			t.Fatalf("%s has a block of %q", file, language)
		}
		*into[language] = append(*into[language], block)
	}
	return g
}

// TestOwnProxies follows the guide for proxies that somebody else runs, word by word:
// the chart with its values, its manifests and commands by kubectl. What a kubelet, a
// Deployment and a load balancer do is done here; ports are others, since this machine
// has more to do.
func TestOwnProxies(t *testing.T) {
	t.Parallel()
	kubectl := findKubectl(t)
	page := readGuide(t, ownProxies)
	if len(page.yaml) != 3 || len(page.bash) != 1 || len(page.console) != 2 {
		t.Fatalf("the page has %d blocks of YAML, %d of bash and %d of console", len(page.yaml), len(page.bash), len(page.console))
	}
	// The name of what counts, of which the page says how to make it.
	_, hash, _ := strings.Cut(page.console[1], "\n")
	name := infra.Places{}.LimitsName(object.Name{Namespace: "shop", Name: "web"}, "gatehouse").Name
	if want := "web-gatehouse-limits-" + strings.TrimSpace(hash); name != want {
		t.Errorf("the page says %s of what is called %s", want, name)
	}
	c := startControllers(t, "../../config/namespace.yaml", renderChart(t, page.yaml[0]))
	sh := kubectl.shell(t, c)

	// The controller.
	installed := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: controllerNamespace, Name: "gatehouse"}, installed); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(installed.Data["config.yaml"]), &fields); err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t)
	fields["ports"] = ports
	delete(fields, "leaderElection")
	fields["leaderElection"] = map[string]any{"name": "gatehouse-leader", "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"}
	controller := c.run(t, nil, "--config", c.configure(t, "config.yaml", fields))
	controller.answers(t, ports.Health, "/readyz")
	eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "gatehouse") })
	class := &gwv1.GatewayClass{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gatehouse"}, class); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(class.Status.SupportedFeatures, gwv1.SupportedFeature{Name: gwv1.FeatureName(features.SupportGatewayInfrastructure)}) {
		t.Error("the class claims that it labels what it doesn't make")
	}

	// The Gateway, with another port and a route.
	port := port.OfTest(t)
	manifest := strings.ReplaceAll(page.yaml[1], "port: 80\n", fmt.Sprintf("port: %d\n", port))
	sh(manifest, "kubectl apply -f -")
	sh(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: home, namespace: shop},
		spec: {parentRefs: [{name: web}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301, hostname: there.example}}]}]}}`, "kubectl apply -f -")
	command, want, _ := strings.Cut(strings.TrimPrefix(page.console[0], "$ "), "\n")
	eventually(t, siteTimeout, func() error {
		if got := strings.TrimSpace(sh("", command)); got != strings.TrimSpace(want) {
			return fmt.Errorf("%s\nsays:  %s\nwants: %s", command, got, want)
		}
		return nil
	})

	// The authority.
	eventually(t, siteTimeout, func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: controllerNamespace, Name: "gatehouse-ca"}, &corev1.ConfigMap{})
	})
	sh("", page.bash[0])

	// The proxies.
	if !strings.Contains(page.yaml[2], "port: 80\n      targetPort: 10080\n") {
		t.Error("the page's Service doesn't lead port 80 to port 10080")
	}
	manifest = strings.ReplaceAll(page.yaml[2], "port: 80\n", fmt.Sprintf("port: %d\n", port))
	manifest = strings.ReplaceAll(manifest, "targetPort: 10080\n", fmt.Sprintf("targetPort: %d\n", port))
	sh(manifest, "kubectl apply -f -")
	at := client.ObjectKey{Namespace: "shop", Name: "web-gatehouse"}
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), at, deployment); err != nil {
		t.Fatal(err)
	}
	proxy := c.startPod(t, deployment.Spec.Template, "web-gatehouse-1", ports)
	eventually(t, siteTimeout, proxy.ready)
	service := &corev1.Service{}
	if err := c.Get(t.Context(), at, service); err != nil {
		t.Fatal(err)
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := c.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		gateway := &gwv1.Gateway{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, gateway); err != nil {
			return err
		}
		s := gateway.Status
		if len(s.Addresses) != 1 || s.Addresses[0].Value != "192.0.2.7" || !meta.IsStatusConditionTrue(s.Conditions, "Programmed") {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	redirects := func(host string) {
		t.Helper()
		web := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		eventually(t, siteTimeout, func() error {
			res, err := web.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if got := res.Header.Get("Location"); res.StatusCode != http.StatusMovedPermanently || !strings.Contains(got, host) {
				return fmt.Errorf("%s to %q", res.Status, got)
			}
			return nil
		})
	}
	redirects("there.example")
	sh("", `kubectl patch httproute -n shop home --type=json -p '[{"op": "replace", "path": "/spec/rules/0/filters/0/requestRedirect/hostname", "value": "elsewhere.example"}]'`)
	redirects("elsewhere.example")
	proxy.signal(t)
	proxy.ends(t)
	controller.stop(t)
}

// renderChart writes the chart's manifest for values into a file.
func renderChart(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	helm := exec.Command("go", "tool", "-modfile=../../tools/helm/go.mod", "helm", "template", "gatehouse", "../../charts/gatehouse",
		"--namespace", controllerNamespace, "--set", "crds.install=false", "--no-hooks", "--values", file)
	var errs bytes.Buffer
	helm.Stderr = &errs
	out, err := helm.Output()
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, errs.String())
	}
	file = filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(file, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubectl is the directory of the program.
type kubectl string

// findKubectl finds it where the API server's binary is.
func findKubectl(t *testing.T) kubectl {
	t.Helper()
	dir := os.Getenv("GATEHOUSE_KUBE_BIN")
	if dir == "" {
		cache, err := cluster.Cache()
		if err != nil {
			t.Skip("no kubectl: ", err)
		}
		dir = filepath.Join(cache, "bin")
	}
	if _, err := os.Stat(filepath.Join(dir, "kubectl")); err != nil {
		t.Skip("no kubectl: ", err)
	}
	return kubectl(dir)
}

// shell returns what runs commands of an administrator of the cluster, with a text as
// their input, and returns what they print.
func (k kubectl) shell(t *testing.T, c *controllers) func(input, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, c.server, "", nil, file)
	dir := t.TempDir()
	return func(input, script string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+file, "PATH="+string(k)+":"+os.Getenv("PATH"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, errs.String())
		}
		return out.String()
	}
}

// startPod makes a pod of a template, as far as the API server knows, and runs its
// container: with the volumes that it has, below other paths, and with the controller
// and the ports where they are on this machine. Flags come behind those of the template.
func (c *controllers) startPod(t *testing.T, template corev1.PodTemplateSpec, name string, ports controllerPorts, flags ...string) *pod {
	t.Helper()
	return c.runPod(t, c.makePod(t, template, name), ports, flags...)
}

// runPod runs the container of a pod that the API server has.
func (c *controllers) runPod(t *testing.T, made *corev1.Pod, ports controllerPorts, flags ...string) *pod {
	t.Helper()
	root, err := os.MkdirTemp(scratch, "p")
	if err != nil {
		t.Fatal(err)
	}
	container := made.Spec.Containers[0]
	files := map[string]string{} // by path in the container
	for _, mount := range container.VolumeMounts {
		i := slices.IndexFunc(made.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			t.Fatalf("there is no volume %s", mount.Name)
		}
		if err := os.MkdirAll(filepath.Join(root, mount.MountPath), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.contents(t, made, made.Spec.Volumes[i]) {
			files[filepath.Join(mount.MountPath, file)] = text
		}
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	args := slices.Clone(container.Args)
	// Its name is in the controllers' certificates, but no name server here has it.
	i := slices.Index(args, "--controller=gatehouse.gatehouse-system.svc")
	if i < 0 {
		t.Fatalf("the proxy doesn't dial the chart's Service: %q", args)
	}
	args[i] = "--controller=localhost"
	for i, arg := range args { // what it is told to read is below another root
		if name, path, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(path, "/var/run/secrets/") {
			args[i] = name + "=" + filepath.Join(root, path)
		}
	}
	p := &pod{health: net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))}
	tools := needTools(t)
	args = append(args, "--health="+p.health, "--api-port="+strconv.Itoa(ports.API),
		// Where the flags' own defaults lead to, in the container.
		"--token-file="+filepath.Join(root, "/var/run/secrets/gatehouse.dev/token/token"),
		"--ca-file="+filepath.Join(root, "/var/run/secrets/gatehouse.dev/ca/ca.crt"))
	if args[0] == "proxy" {
		args = append(args, "--drain-delay=0s", "--concurrency=1", "--xds-port="+strconv.Itoa(ports.XDS),
			"--state-dir="+filepath.Join(root, "/var/run/gatehouse"))
	}
	p.Cmd = exec.Command(tools.gatehouse, append(args, flags...)...)
	p.Env = append(os.Environ(), "GATEHOUSE_ENVOY="+tools.envoy)
	p.run(t)
	return p
}

// makePod makes a pod of a template that has an address, as far as the API server knows.
func (c *controllers) makePod(t *testing.T, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	t.Helper()
	return c.makePodIn(t, "shop", template, name)
}

func (c *controllers) makePodIn(t *testing.T, namespace string, template corev1.PodTemplateSpec, name string) *corev1.Pod {
	t.Helper()
	made := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	made.Namespace, made.Name = namespace, name
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	made.Status.PodIPs = []corev1.PodIP{{IP: "127.0.0.1"}}
	made.Status.PodIP = made.Status.PodIPs[0].IP
	if err := c.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return made
}

// contents are the files of a volume, as the kubelet makes them.
func (c *controllers) contents(t *testing.T, made *corev1.Pod, volume corev1.Volume) map[string]string {
	t.Helper()
	switch {
	case volume.ConfigMap != nil:
		o := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: made.Namespace, Name: volume.ConfigMap.Name}, o); err != nil {
			t.Fatal(err)
		}
		return o.Data
	case volume.Projected != nil && volume.Projected.Sources[0].Secret != nil:
		files := map[string]string{}
		for _, source := range volume.Projected.Sources {
			o := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: made.Namespace, Name: source.Secret.Name}, o); err != nil {
				t.Fatal(err)
			}
			for _, item := range source.Secret.Items {
				if value, ok := o.Data[item.Key]; ok {
					files[item.Path] = string(value)
				}
			}
		}
		return files
	case volume.Projected != nil:
		token := volume.Projected.Sources[0].ServiceAccountToken
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: made.Namespace, Name: made.Spec.ServiceAccountName}}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{token.Audience}, ExpirationSeconds: token.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: made.Name, UID: made.UID},
		}}
		if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		return map[string]string{token.Path: request.Status.Token}
	default:
		return nil
	}
}
