package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// namespace has all that is made.
const namespace = "gatehouse-scale"

type options struct {
	class      string
	controller string // namespace/name
	metrics    int
	routes     int
	rate       int
	idle       time.Duration
	image      string
	lease      string // its name, in the controller's namespace
	record     string // the file of the bars' figures
}

type bench struct {
	options
	cluster *cluster.Cluster
	client  client.WithWatch
	web     *http.Transport
	audit   *audit
	address string // of the Gateway

	mu      sync.Mutex // of figures, where several things are timed at once
	figures map[string]float64
}

func newBench(o options) (*bench, error) {
	c, err := cluster.Open()
	if err != nil {
		return nil, err
	}
	if c.Dir == "" {
		return nil, errors.New("writes are counted in the audit log of a cluster that `make cluster` brought up: unset KUBECONFIG")
	}
	k, err := c.Client()
	if err != nil {
		return nil, err
	}
	account := "system:serviceaccount:" + strings.Replace(o.controller, "/", ":", 1)
	return &bench{
		options: o,
		cluster: c,
		client:  k,
		web:     &http.Transport{DialContext: c.Dial, MaxIdleConnsPerHost: 16},
		audit:   &audit{path: filepath.Join(c.Dir, "log", "audit.log"), user: account},
		figures: map[string]float64{},
	}, nil
}

func (b *bench) close() { b.web.CloseIdleConnections() }

// setUp makes a backend, and a Gateway with a fleet of one that serves it.
func (b *bench) setUp(ctx context.Context) error {
	if err := b.tearDown(); err != nil {
		return err
	}
	selector := map[string]string{"app": "echo"}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "echo", Namespace: namespace},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: selector},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: selector},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "echo", Image: b.image,
						Env: []corev1.EnvVar{field("POD_NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace")},
					}}},
				},
			},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "echo", Namespace: namespace},
			Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 3000}}},
		},
		b.gateway("one", nil),
		b.route("one", "one"),
	} {
		if err := b.client.Create(ctx, object); err != nil {
			return err
		}
	}
	var err error
	b.address, err = b.ready(ctx, "one")
	return err
}

// ready waits until a Gateway is programmed and the route of its name answers, and
// returns its address.
func (b *bench) ready(ctx context.Context, name string) (string, error) {
	var address string
	err := cluster.Await(ctx, "the Gateway "+name, func() error {
		var g gwv1.Gateway
		if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &g); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(g.Status.Conditions, string(gwv1.GatewayConditionProgrammed)) || len(g.Status.Addresses) == 0 {
			return fmt.Errorf("the Gateway %s is not programmed: %v", name, g.Status.Conditions)
		}
		address = g.Status.Addresses[0].Value
		return b.get(ctx, address, name)
	})
	return address, err
}

// get asks a Gateway for a route's host, and wants the backend's answer.
func (b *bench) get(ctx context.Context, address, host string) error {
	return request(ctx, b.web, address, host, nil)
}

// request asks for a route's host, and wants an answer of 200 with these headers.
func request(ctx context.Context, transport *http.Transport, address, host string, headers map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	r.Host = host + ".example.com"
	response, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	for name, want := range headers {
		if got := response.Header.Get(name); got != want {
			return fmt.Errorf("the answer of %s has %s: %q, want %q", host, name, got, want)
		}
	}
	return nil
}

// tearDown removes the namespace, after an interrupt too.
func (b *bench) tearDown() error {
	return cluster.RemoveNamespace(context.Background(), b.client, namespace)
}

// fleetOf returns parameters of a name for a fleet of so many proxies, with what a
// Gateway refers to them by.
func fleetOf(name string, proxies int32) (*v1alpha1.GatewayParameters, *gwv1.LocalParametersReference) {
	return &v1alpha1.GatewayParameters{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: v1alpha1.GatewayParametersSpec{Settings: v1alpha1.Settings{
			Deployment: &v1alpha1.Deployment{Replicas: &proxies},
		}},
	}, &gwv1.LocalParametersReference{
		Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "GatewayParameters", Name: name,
	}
}

func (b *bench) gateway(name string, parameters *gwv1.LocalParametersReference) *gwv1.Gateway {
	return &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: gwv1.GatewaySpec{
			GatewayClassName: gwv1.ObjectName(b.class),
			Infrastructure:   &gwv1.GatewayInfrastructure{ParametersRef: parameters},
			Listeners:        []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
		},
	}
}

// route sends a host of its name to the backend.
func (b *bench) route(name, gateway string) *gwv1.HTTPRoute {
	return &gwv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}},
			Hostnames:       []gwv1.Hostname{gwv1.Hostname(name + ".example.com")},
			Rules: []gwv1.HTTPRouteRule{{
				BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
					BackendObjectReference: gwv1.BackendObjectReference{Name: "echo", Port: new(gwv1.PortNumber(3000))},
				}}},
			}},
		},
	}
}
