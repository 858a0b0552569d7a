package configuration

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/extension"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// controllerName is the API's own pattern for spec.controllerName.
var controllerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)

// Levels and Formats are what Log takes.
var (
	Levels  = []string{"debug", "info", "warn", "error"}
	Formats = []string{"json", "text"}
)

// mostSeries take some gigabytes of a controller's memory.
const mostSeries = 10_000_000

// Validate reports all that is wrong, each with its field.
func (c *Configuration) Validate() error {
	var errs field.ErrorList
	if c.APIVersion != APIVersion {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), c.APIVersion, []string{APIVersion}))
	}
	if c.Kind != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), c.Kind, []string{Kind}))
	}
	if !controllerName.MatchString(c.ControllerName) {
		errs = append(errs, field.Invalid(field.NewPath("controllerName"), c.ControllerName, "must be DOMAIN/PATH, such as gatehouse.dev/controller"))
	}
	errs = append(errs, c.roles(field.NewPath("roles"))...)
	errs = append(errs, c.sources(field.NewPath("sources"))...)
	errs = append(errs, c.infrastructure(field.NewPath("infrastructure"))...)
	errs = append(errs, c.LeaderElection.validate(field.NewPath("leaderElection"))...)
	if c.GatewayClass != nil {
		for _, wrong := range validation.IsDNS1123Subdomain(c.GatewayClass.Name) {
			errs = append(errs, field.Invalid(field.NewPath("gatewayClass", "name"), c.GatewayClass.Name, wrong))
		}
	}
	errs = append(errs, c.Identity.validate(field.NewPath("identity"))...)
	errs = append(errs, c.Ports.validate(field.NewPath("ports"))...)
	if age := c.XDS.MaxConnectionAge.Duration; age != 0 && age < leastAge {
		errs = append(errs, field.Invalid(field.NewPath("xds", "maxConnectionAge"), age.String(), "must be 0, for no bound, or at least "+leastAge.String()))
	}
	errs = append(errs, c.Log.validate(field.NewPath("log"))...)
	if p := field.NewPath("apiServer"); c.APIServer.QPS <= 0 {
		errs = append(errs, field.Invalid(p.Child("qps"), c.APIServer.QPS, "must be above 0"))
	} else if float32(c.APIServer.Burst) < c.APIServer.QPS {
		errs = append(errs, field.Invalid(p.Child("burst"), c.APIServer.Burst, "must be at least qps"))
	}
	series := func(name string, n int) {
		if n < 0 || n > mostSeries {
			errs = append(errs, field.Invalid(field.NewPath("figures", name), n, "must be between 0 and "+strconv.Itoa(mostSeries)))
		}
	}
	series("maxSeriesPerGateway", c.Figures.MaxSeriesPerGateway)
	series("maxSeriesPerNamespace", c.Figures.MaxSeriesPerNamespace)
	errs = append(errs, c.Figures.OTLP.validate(field.NewPath("figures", "otlp"))...)
	errs = append(errs, extension.Validate(c.Extensions, field.NewPath("extensions"))...)
	return errs.ToAggregate()
}

// leastAge keeps thousands of proxies from connecting all the time.
const leastAge = time.Minute

func (o OTLP) validate(path *field.Path) (errs field.ErrorList) {
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, field.Invalid(path.Child("endpoint"), field.OmitValueType{}, "must be a URL without a password and a query, such as http://collector.monitoring:4318/v1/metrics"))
		}
	}
	if d := o.Interval.Duration; d < time.Second || d > time.Hour {
		errs = append(errs, field.Invalid(path.Child("interval"), d.String(), "must be between 1s and 1h"))
	}
	return errs
}

func (c *Configuration) roles(path *field.Path) (errs field.ErrorList) {
	if len(c.Roles) == 0 {
		errs = append(errs, field.Required(path, "name at least one of Configuration and Infrastructure"))
	}
	for i, r := range c.Roles {
		switch {
		case !slices.Contains(Roles, r):
			errs = append(errs, field.NotSupported(path.Index(i), r, Roles))
		case slices.Contains(c.Roles[:i], r):
			errs = append(errs, field.Duplicate(path.Index(i), r))
		}
	}
	if len(errs) == 0 && !c.Has(RoleConfiguration) && c.Infrastructure.Type == InfrastructureNone {
		errs = append(errs, field.Invalid(path, c.Roles, "a process with the role Infrastructure alone makes fleets, and with infrastructure.type None there are none; run processes with the role Configuration only"))
	}
	return errs
}

func (c *Configuration) sources(path *field.Path) (errs field.ErrorList) {
	if len(c.Sources) == 0 {
		errs = append(errs, field.Required(path, "name at least one source, such as kubernetes: {}"))
	}
	clusters, members := 0, 0
	servers := map[string]bool{}
	defer func() {
		if len(c.Sources) > 0 && clusters == 0 {
			errs = append(errs, field.Required(path, "one source must be kubernetes; 'gatehouse run' serves files alone"))
		}
	}()
	for i, s := range c.Sources {
		p := path.Index(i)
		switch {
		case s.set() != 1:
			errs = append(errs, field.Invalid(p, "", "exactly one of kubernetes, files, remote, clusters and ingress must be set"))
		case len(s.Clusters) > 0:
			if members++; members > 1 {
				errs = append(errs, field.Duplicate(p.Child("clusters"), ""))
			}
			errs = append(errs, validateClusters(s.Clusters, p.Child("clusters"))...)
		case s.Remote != nil:
			if servers[s.Remote.Address] {
				errs = append(errs, field.Duplicate(p.Child("remote", "address"), s.Remote.Address))
			}
			servers[s.Remote.Address] = true
			errs = append(errs, s.Remote.validate(p.Child("remote"))...)
		case s.Kubernetes != nil:
			if clusters++; clusters > 1 {
				errs = append(errs, field.Duplicate(p.Child("kubernetes"), ""))
			}
			errs = append(errs, s.Kubernetes.validate(p.Child("kubernetes"))...)
		case s.Ingress != nil:
			if i < len(c.Sources)-1 {
				errs = append(errs, field.Forbidden(p.Child("ingress"), "it must be the last source: what somebody has written counts before what is made of Ingresses"))
			}
			errs = append(errs, s.Ingress.validate(p.Child("ingress"))...)
		case len(s.Files.Paths) == 0:
			errs = append(errs, field.Required(p.Child("files", "paths"), "name directories or files with manifests"))
		}
	}
	return errs
}

func (r *Remote) validate(path *field.Path) (errs field.ErrorList) {
	host, port, err := net.SplitHostPort(r.Address)
	if err != nil || host == "" || port == "" {
		errs = append(errs, field.Invalid(path.Child("address"), r.Address, "must be HOST:PORT"))
	}
	t, in := r.TLS, path.Child("tls")
	if (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, field.Required(in.Child("keyFile"), "certFile and keyFile go together"))
	}
	if t.Plaintext && (t.CAFile != "" || t.CertFile != "" || t.ServerName != "") {
		errs = append(errs, field.Forbidden(in.Child("plaintext"), "without TLS there are no certificates"))
	}
	if t.Plaintext && r.TokenFile != "" {
		errs = append(errs, field.Forbidden(path.Child("tokenFile"), "a token is sent with TLS only"))
	}
	return errs
}

// set counts the kinds of source that one has.
func (s *Source) set() (n int) {
	for _, has := range []bool{s.Kubernetes != nil, s.Files != nil, s.Remote != nil, s.Ingress != nil, len(s.Clusters) > 0} {
		if has {
			n++
		}
	}
	return n
}

func validateClusters(list []Cluster, path *field.Path) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, c := range list {
		in := path.Index(i)
		for _, wrong := range validation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(in.Child("name"), c.Name, wrong))
		}
		if seen[c.Name] {
			errs = append(errs, field.Duplicate(in.Child("name"), c.Name))
		}
		if seen[c.Name] = true; c.Context != "" && c.Kubeconfig == "" {
			errs = append(errs, field.Required(in.Child("kubeconfig"), "a context is one of a kubeconfig"))
		}
		if c.KeepFor.Duration < 0 {
			errs = append(errs, field.Invalid(in.Child("keepFor"), c.KeepFor.Duration.String(), "must not be negative"))
		}
		errs = append(errs, validateNamespaces(c.Namespaces, in.Child("namespaces"))...)
	}
	return errs
}

func validateNamespaces(list []string, path *field.Path) (errs field.ErrorList) {
	for i, ns := range list {
		for _, wrong := range validation.IsDNS1123Label(ns) {
			errs = append(errs, field.Invalid(path.Index(i), ns, wrong))
		}
	}
	return errs
}

func (i *Ingress) validate(path *field.Path) (errs field.ErrorList) {
	if len(validation.IsDNS1123Subdomain(i.Class)) > 0 {
		errs = append(errs, field.Invalid(path.Child("class"), i.Class, "name the class of the Ingresses that are served"))
	}
	if wrong := validation.IsDNS1123Subdomain(i.GatewayClass); i.GatewayClass != "" && len(wrong) > 0 {
		errs = append(errs, field.Invalid(path.Child("gatewayClass"), i.GatewayClass, wrong[0]))
	}
	for name, text := range map[string]string{"gateway": i.Gateway, "configMap": i.ConfigMap, "defaultCertificate": i.DefaultCertificate} {
		namespace, of, _ := strings.Cut(text, "/")
		if text == "" && name != "gateway" {
			continue
		}
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(of)) > 0 {
			errs = append(errs, field.Invalid(path.Child(name), text, "must be NAMESPACE/NAME"))
		}
	}
	return errs
}

func (k *Kubernetes) validate(path *field.Path) (errs field.ErrorList) {
	if len(k.Namespaces) > 0 && k.NamespaceSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("namespaceSelector"), "can't be used together with namespaces"))
	}
	errs = append(errs, validateNamespaces(k.Namespaces, path.Child("namespaces"))...)
	return append(errs, metav1validation.ValidateLabelSelector(k.NamespaceSelector,
		metav1validation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))...)
}

func (c *Configuration) infrastructure(path *field.Path) (errs field.ErrorList) {
	in := c.Infrastructure
	switch in.Type {
	case InfrastructureKubernetes, InfrastructureNone:
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), in.Type, []InfrastructureType{InfrastructureKubernetes, InfrastructureNone}))
	}
	switch in.ImagePullPolicy {
	case "", "Always", "IfNotPresent", "Never":
	default:
		errs = append(errs, field.NotSupported(path.Child("imagePullPolicy"), in.ImagePullPolicy, []string{"Always", "IfNotPresent", "Never"}))
	}
	for _, wrong := range validation.IsDNS1035Label(in.Service) {
		errs = append(errs, field.Invalid(path.Child("service"), in.Service, wrong))
	}
	return append(errs, c.places(path)...)
}

// places checks where fleets are: the Services of these namespaces have to be read.
func (c *Configuration) places(path *field.Path) (errs field.ErrorList) {
	from := c.Cluster()
	check := func(path *field.Path, namespace string) {
		for _, wrong := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path, namespace, wrong))
		}
		switch {
		case from.NamespaceSelector != nil:
			errs = append(errs, field.Forbidden(path, "it can't be had together with namespaceSelector of the source kubernetes, which may leave out its Services; use namespaces"))
		case len(from.Namespaces) > 0 && !slices.Contains(from.Namespaces, namespace):
			errs = append(errs, field.Invalid(path, namespace, "must be among the namespaces of the source kubernetes, since the Services of fleets are read"))
		}
	}
	if namespace := c.Infrastructure.Namespace; namespace != "" {
		check(path.Child("namespace"), namespace)
	}
	for i, namespace := range c.Infrastructure.FormerNamespaces {
		if namespace != infra.OfGateways {
			check(path.Child("formerNamespaces").Index(i), namespace)
		}
	}
	return errs
}

func (l *LeaderElection) validate(path *field.Path) (errs field.ErrorList) {
	for _, wrong := range validation.IsDNS1123Subdomain(l.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), l.Name, wrong))
	}
	// client-go demands as much of the three, with its jitter of 1.2. That leaseDuration
	// is more than renewDeadline also keeps two replicas from writing at the same time.
	switch {
	case l.RetryPeriod.Duration <= 0:
		errs = append(errs, field.Invalid(path.Child("retryPeriod"), l.RetryPeriod.Duration.String(), "must be above 0"))
	case l.RenewDeadline.Duration <= l.RetryPeriod.Duration*6/5:
		errs = append(errs, field.Invalid(path.Child("renewDeadline"), l.RenewDeadline.Duration.String(), "must be more than 1.2 times retryPeriod"))
	case l.LeaseDuration.Duration <= l.RenewDeadline.Duration:
		errs = append(errs, field.Invalid(path.Child("leaseDuration"), l.LeaseDuration.Duration.String(), "must be more than renewDeadline"))
	case l.TakeOverAfter.Duration < 2*l.LeaseDuration.Duration: // else a restart loses the controllerName
		errs = append(errs, field.Invalid(path.Child("takeOverAfter"), l.TakeOverAfter.Duration.String(), "must be at least twice leaseDuration"))
	}
	return errs
}

func (i *Identity) validate(path *field.Path) (errs field.ErrorList) {
	const least = 10 // minutes; below, clocks that differ make certificates invalid
	if i.ProxyLifetime.Minutes() < least {
		errs = append(errs, field.Invalid(path.Child("proxyLifetime"), i.ProxyLifetime.Duration.String(), "must be at least 10m"))
	}
	if i.AuthorityLifetime.Duration < 4*i.ProxyLifetime.Duration {
		errs = append(errs, field.Invalid(path.Child("authorityLifetime"), i.AuthorityLifetime.Duration.String(), "must be at least 4 times proxyLifetime"))
	}
	return errs
}

func (p *Ports) validate(path *field.Path) (errs field.ErrorList) {
	taken := map[int]string{}
	for _, port := range []struct {
		name  string
		value int
		off   bool // may be turned off
	}{{"xds", p.XDS, false}, {"api", p.API, false}, {"metrics", p.Metrics, true}, {"health", p.Health, true}, {"fleetAPI", p.FleetAPI, true}} {
		switch {
		case port.value == 0 && port.off:
			continue
		case port.value < 1 || port.value > 65535:
			errs = append(errs, field.Invalid(path.Child(port.name), port.value, "must be a port, 1 to 65535"))
		case taken[port.value] != "":
			errs = append(errs, field.Invalid(path.Child(port.name), port.value, "is the port of "+taken[port.value]+" already"))
		}
		taken[port.value] = port.name
	}
	return errs
}

func (l *Log) validate(path *field.Path) (errs field.ErrorList) {
	if !slices.Contains(Levels, l.Level) {
		errs = append(errs, field.NotSupported(path.Child("level"), l.Level, Levels))
	}
	if !slices.Contains(Formats, l.Format) {
		errs = append(errs, field.NotSupported(path.Child("format"), l.Format, Formats))
	}
	for component, level := range l.Levels {
		p := path.Child("levels").Key(string(component))
		if !slices.Contains(Components, component) {
			errs = append(errs, field.NotSupported(p, component, Components))
		} else if !slices.Contains(Levels, level) {
			errs = append(errs, field.NotSupported(p, level, Levels))
		}
	}
	return errs
}
