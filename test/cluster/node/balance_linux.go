package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// balance gives Services of type LoadBalancer their addresses, as a cloud would:
// the one that spec.loadBalancerIP asks for, or the next free one. kube-proxy
// does the rest. The informer lists and watches again whenever the API server
// ends a watch.
func balance(ctx context.Context, kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Println("load balancer:", err)
		return
	}
	config.QPS, config.Burst = 100, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println("load balancer:", err)
		return
	}
	b := &balancer{client: client}
	factory := informers.NewSharedInformerFactory(client, 0)
	changed := make(chan struct{}, 1)
	// Others have no addresses of ours, and there may be thousands of them.
	wake := func(object any) {
		if s, ok := object.(*corev1.Service); ok && s.Spec.Type != corev1.ServiceTypeLoadBalancer {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err = factory.Core().V1().Services().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake,
		UpdateFunc: func(before, after any) {
			wake(before)
			wake(after)
		},
		DeleteFunc: wake,
	})
	if err != nil {
		fmt.Println("load balancer:", err)
		return
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range changed {
		if err := b.assign(ctx); err != nil {
			fmt.Println("load balancer:", err)
			time.AfterFunc(time.Second, func() { wake(nil) })
		}
	}
}

type balancer struct {
	client kubernetes.Interface
}

// assign gives each Service what it should have and does not. It asks the API server
// itself: a cache that lags behind our own writes would have us give one address to two.
func (b *balancer) assign(ctx context.Context) error {
	list, err := b.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	services := list.Items
	// Who came first has the address that two ask for.
	slices.SortStableFunc(services, func(x, y corev1.Service) int {
		return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
	})
	taken := map[string]bool{}
	for i := range services {
		for _, ingress := range services[i].Status.LoadBalancer.Ingress {
			taken[ingress.IP] = true
		}
	}
	for i := range services {
		s := &services[i]
		ingress, ok := b.ingress(s, taken)
		if !ok {
			continue
		}
		s.Status.LoadBalancer.Ingress = ingress
		if _, err := b.client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("%s/%s: %w", s.Namespace, s.Name, err)
		}
	}
	return nil
}

// ingress is what a Service's status should say, if it says something else.
func (b *balancer) ingress(s *corev1.Service, taken map[string]bool) ([]corev1.LoadBalancerIngress, bool) {
	has := s.Status.LoadBalancer.Ingress
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.DeletionTimestamp != nil {
		return nil, len(has) > 0
	}
	if s.Spec.LoadBalancerClass != nil {
		return nil, false // another's
	}
	wanted := s.Spec.LoadBalancerIP
	if len(has) == 1 && (wanted == "" || has[0].IP == wanted) {
		return nil, false
	}
	if wanted == "" {
		wanted = free(taken)
	} else if taken[wanted] {
		return nil, len(has) > 0 // it waits until the other one is gone
	}
	if wanted == "" {
		return nil, false
	}
	taken[wanted] = true
	return []corev1.LoadBalancerIngress{{IP: wanted, IPMode: new(corev1.LoadBalancerIPModeVIP)}}, true
}

// free is the next address that nobody has; empty if there is none. The upper
// quarter is left to those who ask for an address.
func free(taken map[string]bool) string {
	pool := netip.MustParsePrefix(balancers)
	for ip := pool.Addr().Next(); pool.Contains(ip) && ip.As4()[3] < 192; ip = ip.Next() {
		if !taken[ip.String()] {
			return ip.String()
		}
	}
	return ""
}
