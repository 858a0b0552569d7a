package configuration

import (
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/extension"
	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// APIVersion and Kind are how a configuration file begins.
const (
	APIVersion = "config.gatehouse.dev/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is the content of a configuration file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// ControllerName is the spec.controllerName of the GatewayClasses that this
	// controller serves. Several controllers in one cluster need different ones.
	ControllerName string `json:"controllerName"`

	// Roles are what this process does; by default everything.
	Roles []Role `json:"roles"`

	// Sources are where objects come from. Where two define the same object, the
	// source listed first wins.
	Sources []Source `json:"sources"`

	Infrastructure Infrastructure `json:"infrastructure"`
	LeaderElection LeaderElection `json:"leaderElection"`
	GatewayClass   *GatewayClass  `json:"gatewayClass,omitempty"`
	Identity       Identity       `json:"identity"`
	Ports          Ports          `json:"ports"`
	XDS            XDS            `json:"xds"`
	Log            Log            `json:"log"`
	APIServer      APIServer      `json:"apiServer"`
	Figures        Figures        `json:"figures"`
	// Extensions are servers that change what proxies are sent, in this order.
	Extensions []extension.Options `json:"extensions,omitempty"`
}

// Role is a part of what a controller does, which can have processes of its own.
type Role string

// The roles. Processes that share them in a namespace have one configuration in common.
const (
	// RoleConfiguration makes configuration, serves it to proxies, and writes statuses.
	RoleConfiguration Role = "Configuration"
	// RoleInfrastructure makes the fleets of Gateways.
	RoleInfrastructure Role = "Infrastructure"
)

// Roles are all that there are.
var Roles = []Role{RoleConfiguration, RoleInfrastructure}

// Has reports whether this process has a role.
func (c *Configuration) Has(r Role) bool { return slices.Contains(c.Roles, r) }

// MakesFleets reports whether this process makes the fleets of Gateways.
func (c *Configuration) MakesFleets() bool {
	return c.Has(RoleInfrastructure) && c.Infrastructure.Type == InfrastructureKubernetes
}

// Apart reports whether processes of another role belong to this one: those that make fleets, or those that serve
// configuration to them.
func (c *Configuration) Apart() bool {
	return c.Infrastructure.Type == InfrastructureKubernetes && !(c.Has(RoleConfiguration) && c.Has(RoleInfrastructure))
}

// Lease is the name of the Lease by which those who have these roles elect one of them.
func (c *Configuration) Lease() string {
	if c.Has(RoleConfiguration) {
		return c.LeaderElection.Name
	}
	return c.LeaderElection.Name + "-infrastructure"
}

// Source is one of the places that objects come from: exactly one field is set.
type Source struct {
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	Files      *Files      `json:"files,omitempty"`
	Remote     *Remote     `json:"remote,omitempty"`
	Ingress    *Ingress    `json:"ingress,omitempty"`
	// Clusters are those whose exported Services belong together.
	Clusters []Cluster `json:"clusters,omitempty"`
}

// Cluster is one of several clusters whose exported Services belong together.
type Cluster struct {
	// Name is what policies call it.
	Name string `json:"name"`
	// Kubeconfig is a file, and Context one of its contexts, if not the current one. Without a file it is the cluster that
	// the kubernetes source reads.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Namespaces restricts what is read to these namespaces; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// KeepFor is how long its endpoints stay in force once it can't be asked.
	KeepFor metav1.Duration `json:"keepFor,omitzero"`
}

// Ingress serves the Ingresses that the other sources have, as ingress-nginx does.
type Ingress struct {
	// Class is the class of the Ingresses that are served.
	Class string `json:"class"`
	// Gateway is the Gateway, NAMESPACE/NAME, that is made for them, and GatewayClass its class.
	Gateway      string `json:"gateway"`
	GatewayClass string `json:"gatewayClass,omitempty"`
	// ConfigMap, NAMESPACE/NAME, is that of ingress-nginx's controller, whose defaults hold without it.
	ConfigMap string `json:"configMap,omitempty"`
	// DefaultCertificate is the Secret, NAMESPACE/NAME, for hosts whose Ingress names none.
	DefaultCertificate string `json:"defaultCertificate,omitempty"`
}

// Ingresses returns the source that serves Ingresses; nil if there is none.
func (c *Configuration) Ingresses() *Ingress { return c.Sources[len(c.Sources)-1].Ingress }

// Kubernetes reads the objects of the cluster.
type Kubernetes struct {
	// Namespaces restricts what is read to these namespaces; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector restricts it to the namespaces with these labels. Only one of
	// the two can be used.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Cluster returns the source that is the cluster; a valid configuration has one.
func (c *Configuration) Cluster() Kubernetes {
	for _, s := range c.Sources {
		if s.Kubernetes != nil {
			return *s.Kubernetes
		}
	}
	return Kubernetes{}
}

// Files reads manifests from files and directories, which are watched.
type Files struct {
	Paths []string `json:"paths"`
}

// Remote subscribes to a config server.
type Remote struct {
	// Address is HOST:PORT.
	Address string    `json:"address"`
	TLS     RemoteTLS `json:"tls,omitzero"`
	// TokenFile has a bearer token to show.
	TokenFile string `json:"tokenFile,omitempty"`
	// StateDir is a directory for its last state, so that a restart needs no server; empty keeps it in memory only.
	StateDir string `json:"stateDir,omitempty"`
}

// RemoteTLS says how a config server is known, and what is shown to it.
type RemoteTLS struct {
	// CAFile has the authorities that its certificate may be of; empty for the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile have the certificate to show; empty for none.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name in the server's certificate; empty for the host of the address.
	ServerName string `json:"serverName,omitempty"`
	// Plaintext does without TLS.
	Plaintext bool `json:"plaintext,omitempty"`
}

// InfrastructureType says who runs the proxies.
type InfrastructureType string

// The types of infrastructure.
const (
	// InfrastructureKubernetes gives every Gateway a Deployment or DaemonSet.
	InfrastructureKubernetes InfrastructureType = "Kubernetes"
	// InfrastructureNone leaves the proxies to somebody else: only configuration and
	// status are done.
	InfrastructureNone InfrastructureType = "None"
)

// Infrastructure says how the fleets of Gateways are made.
type Infrastructure struct {
	Type InfrastructureType `json:"type"`
	// Image is the image of the proxies; empty is that of the controller itself.
	Image string `json:"image,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never; empty is the cluster's default.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	// Service is the name of the Service, in the controller's namespace, that proxies
	// dial.
	Service string `json:"service"`
	// Namespace is where all fleets are, such as the controller's own namespace; empty for each in its Gateway's.
	Namespace string `json:"namespace,omitempty"`
	// FormerNamespaces are where fleets have been before, and are to move from; "*" for the namespaces of Gateways, which
	// is the default where there is a Namespace. Outside of Namespace and these, nothing of fleets is read or written.
	FormerNamespaces []string `json:"formerNamespaces,omitzero"`
}

// Places are the namespaces of fleets.
func (i *Infrastructure) Places() infra.Places {
	former := i.FormerNamespaces
	if former == nil && i.Namespace != "" {
		former = []string{infra.OfGateways}
	}
	return infra.Places{Namespace: i.Namespace, Former: former}
}

// LeaderElection decides which of several replicas writes status and
// infrastructure. All of them serve configuration.
type LeaderElection struct {
	Disabled      bool            `json:"disabled,omitempty"`
	Name          string          `json:"name"` // of the Lease
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	RetryPeriod   metav1.Duration `json:"retryPeriod"`
	// TakeOverAfter is how long those who last wrote for the controllerName must be silent
	// until an installation that stood back takes their place.
	TakeOverAfter metav1.Duration `json:"takeOverAfter"`
}

// GatewayClass is the class that belongs to an installation: it is created again when it
// is gone.
type GatewayClass struct {
	Name          string            `json:"name"`
	Labels        map[string]string `json:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Description   string            `json:"description,omitempty"`
	ParametersRef *ParametersRef    `json:"parametersRef,omitempty"`
}

// ParametersRef names a GatewayParameters object.
type ParametersRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Identity says how long certificates are valid, and who may ask for them.
type Identity struct {
	// AuthorityLifetime is how long the certificate of the authority is valid. After
	// two thirds of it there is a new one, and both are trusted for a while.
	AuthorityLifetime metav1.Duration `json:"authorityLifetime"`
	// ProxyLifetime is how long a proxy's certificate is valid. The proxy renews it
	// after two thirds of that time.
	ProxyLifetime metav1.Duration `json:"proxyLifetime"`
	// AnyAddress accepts a proxy's request for a certificate from another address than
	// its pod's, for networks that translate addresses.
	AnyAddress bool `json:"anyAddress,omitempty"`
}

// Ports are where the controller listens.
type Ports struct {
	XDS     int `json:"xds"`     // configuration for proxies, mutual TLS
	API     int `json:"api"`     // certificates for proxies, and other replicas, TLS
	Metrics int `json:"metrics"` // Prometheus; 0 turns it off
	Health  int `json:"health"`  // /healthz and /readyz
	// FleetAPI is where the API server asks for proxies, by the APIService v1alpha1.fleet.gatehouse.dev; 0 turns it off.
	FleetAPI int `json:"fleetAPI"`
}

// XDS says how proxies' connections are kept.
type XDS struct {
	// MaxConnectionAge is how long one lasts at most; 0 for as long as it can.
	MaxConnectionAge metav1.Duration `json:"maxConnectionAge"`
}

// Log says what is logged.
type Log struct {
	Level  string `json:"level"`  // debug, info, warn or error
	Format string `json:"format"` // json or text
	// Levels are those of components that differ, such as xds: debug.
	Levels map[Component]string `json:"levels,omitempty"`
}

// APIServer bounds the requests to the API server.
type APIServer struct {
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
}

// Figures bounds what is kept of what proxies count, see figures.Bounds, and says where it is sent.
type Figures struct {
	MaxSeriesPerGateway   int  `json:"maxSeriesPerGateway"`
	MaxSeriesPerNamespace int  `json:"maxSeriesPerNamespace"`
	OTLP                  OTLP `json:"otlp"`
}

// OTLP is a collector that takes figures by OTLP over HTTP; none if the endpoint is empty.
type OTLP struct {
	Endpoint string          `json:"endpoint"`
	Interval metav1.Duration `json:"interval"`
}

// Default returns the configuration that holds where nothing else is said.
func Default() *Configuration {
	return &Configuration{
		TypeMeta:       metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		ControllerName: "gatehouse.dev/controller",
		Roles:          slices.Clone(Roles),
		Sources:        []Source{{Kubernetes: &Kubernetes{}}},
		Infrastructure: Infrastructure{
			Type: InfrastructureKubernetes, Image: os.Getenv("GATEHOUSE_IMAGE"), Service: "gatehouse",
		},
		LeaderElection: LeaderElection{
			Name: "gatehouse-leader",
			// Another replica looks every 2.2 retryPeriods at most, so that it leads within 15 s after
			// the leader was killed: one may be lost before the last renewal is seen, and one in the end.
			LeaseDuration: metav1.Duration{Duration: 9 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 6 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: time.Second},
			TakeOverAfter: metav1.Duration{Duration: 5 * time.Minute},
		},
		Identity: Identity{
			AuthorityLifetime: metav1.Duration{Duration: 365 * 24 * time.Hour},
			ProxyLifetime:     metav1.Duration{Duration: time.Hour},
		},
		Ports:     Ports{XDS: 18000, API: 18001, Metrics: 8080, Health: 8081},
		Log:       Log{Level: "info", Format: "json"},
		APIServer: APIServer{QPS: 500, Burst: 1000},
		Figures: Figures{
			MaxSeriesPerGateway: figures.DefaultBounds.Gateway, MaxSeriesPerNamespace: figures.DefaultBounds.Namespace,
			OTLP: OTLP{Interval: metav1.Duration{Duration: 30 * time.Second}},
		},
	}
}
