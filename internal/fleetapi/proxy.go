package fleetapi

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// Names of the resource.
const (
	Group    = "fleet.gatehouse.dev"
	Version  = "v1alpha1"
	Resource = "proxies"
	kind     = "Proxy"
	listKind = "ProxyList"
)

var groupVersion = schema.GroupVersion{Group: Group, Version: Version}

// Proxy is a proxy, named after its pod.
type Proxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            fleet.Proxy `json:"status"`
}

type proxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Proxy `json:"items"`
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: kind}
}

func (e *entry) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.namespace, Name: e.name, ResourceVersion: e.version.String(), Labels: e.labels()}
}

func (e *entry) labels() labels.Set {
	_, gateway, _ := strings.Cut(e.proxy.Gateway, "/")
	return labels.Set{infra.GatewayLabel: gateway}
}

// object is a proxy as clients get it. It has no lag, which is another one each time: the state says whether there is one.
func (e *entry) object() Proxy {
	p := Proxy{TypeMeta: typeOf(kind), ObjectMeta: e.meta(), Status: e.proxy}
	p.Status.LagSeconds = 0
	return p
}

// selection is what of the proxies a request is about.
type selection struct {
	namespace string // empty for all
	name      string // empty for all
	labels    labels.Selector
}

func (s selection) selects(e *entry) bool {
	return (s.namespace == "" || s.namespace == e.namespace) && (s.name == "" || s.name == e.name) &&
		(s.labels.Empty() || s.labels.Matches(e.labels()))
}

// selectionOf reads the selectors of a request.
func selectionOf(namespace, labelSelector, fieldSelector string) (selection, error) {
	s := selection{namespace: namespace}
	var err error
	if s.labels, err = labels.Parse(labelSelector); err != nil {
		return s, err
	}
	of, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return s, err
	}
	for _, r := range of.Requirements() {
		value, exact := of.RequiresExactMatch(r.Field)
		switch {
		case r.Field == "metadata.name" && exact && value != "":
			s.name = value
		case r.Field == "metadata.namespace" && exact && (s.namespace == "" || s.namespace == value) && value != "":
			s.namespace = value
		default:
			return s, fmt.Errorf("proxies are selected by metadata.name=… and metadata.namespace=… alone, not by %s", fieldSelector)
		}
	}
	return s, nil
}

// columns are what `kubectl get` shows, those of priority 1 with -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The pod."},
	{Name: "Gateway", Type: "string", Description: "Whose proxy it is."},
	{Name: "Ready", Type: "string", Description: "Whether Kubernetes sends clients to it."},
	{Name: "Connected", Type: "string", Description: "For how long it has been connected to a controller."},
	{Name: "Wanted", Type: "string", Description: "A hash of all that it is to have."},
	{Name: "Has", Type: "string", Description: "A hash of what it has acknowledged."},
	{Name: "State", Type: "string", Description: "How it is."},
	{Name: "Message", Type: "string", Description: "What is wrong with it."},
	{Name: "Controller", Type: "string", Priority: 1, Description: "To which controller it is connected."},
	{Name: "Node", Type: "string", Priority: 1, Description: "Where its pod runs."},
	{Name: "Zone", Type: "string", Priority: 1, Description: "The zone of the node."},
	{Name: "Certificate", Type: "string", Priority: 1, Description: "In how long the certificate ends that it has connected with."},
	{Name: "Envoy", Type: "string", Priority: 1, Description: "The version of Envoy."},
}

// cells are the values of columns.
func (e *entry) cells(now time.Time) []any {
	p := &e.proxy
	ready := ""
	switch {
	case p.Draining:
		ready = "draining"
	case p.Ready != nil && *p.Ready:
		ready = "yes"
	case p.Ready != nil:
		ready = "no"
	}
	_, gateway, _ := strings.Cut(p.Gateway, "/")
	connected, ends := "", ""
	if !p.Connected.IsZero() {
		connected = duration.HumanDuration(now.Sub(p.Connected))
	}
	if !p.CertificateEnds.IsZero() {
		ends = duration.HumanDuration(p.CertificateEnds.Sub(now))
	}
	return []any{
		e.name, gateway, ready, connected, p.Wanted, p.Acknowledged, string(p.State), p.Remark(),
		p.Replica, p.Node, p.Zone, ends, p.Envoy,
	}
}
