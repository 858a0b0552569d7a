package infra

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// service leads clients to the proxies. Fields that the type of the Service
// doesn't have are left out: the API server refuses them.
func (f *fleet) service() *corev1.Service {
	s := f.settings.Service
	if s == nil {
		s = &v1alpha1.Service{}
	}
	out := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: f.meta(given(s.Labels), f.serviceAnnotations(s.Annotations)),
		Spec: corev1.ServiceSpec{
			Type:                  ptr.Deref(s.Type, corev1.ServiceTypeLoadBalancer),
			Selector:              selecting(f.live),
			InternalTrafficPolicy: s.InternalTrafficPolicy,
			IPFamilyPolicy:        s.IPFamilyPolicy,
			IPFamilies:            s.IPFamilies,
			ExternalIPs:           f.ExternalIPs,
		},
	}
	if f.Internal {
		out.Spec.Type = corev1.ServiceTypeClusterIP
	}
	balanced := out.Spec.Type == corev1.ServiceTypeLoadBalancer
	nodePorts := out.Spec.Type == corev1.ServiceTypeNodePort || balanced && ptr.Deref(s.AllocateLoadBalancerNodePorts, true)
	if balanced {
		out.Spec.LoadBalancerClass = s.LoadBalancerClass
		out.Spec.LoadBalancerSourceRanges = s.LoadBalancerSourceRanges
		out.Spec.AllocateLoadBalancerNodePorts = s.AllocateLoadBalancerNodePorts
		if len(f.Addresses) > 0 {
			out.Spec.LoadBalancerIP = f.Addresses[0]
			out.Spec.ExternalIPs = slices.DeleteFunc(slices.Clone(f.ExternalIPs), func(ip string) bool { return ip == f.Addresses[0] })
		}
	}
	if out.Spec.Type != corev1.ServiceTypeClusterIP {
		// Local keeps the addresses of clients, and spares them a hop.
		out.Spec.ExternalTrafficPolicy = ptr.Deref(s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyLocal)
	}
	fixed := s.NodePorts
	if !nodePorts {
		fixed = nil
	}
	out.Spec.Ports = f.servicePorts(fixed)
	return out
}

// servicePorts are the ports of a Service in front of proxies.
func (f *fleet) servicePorts(nodePorts []v1alpha1.NodePort) []corev1.ServicePort {
	out := make([]corev1.ServicePort, len(f.Ports))
	for i, p := range f.Ports {
		port := corev1.ServicePort{
			Name: fmt.Sprintf("tcp-%d", p.Port), Protocol: corev1.ProtocolTCP,
			Port: int32(p.Port), TargetPort: intstr.FromInt32(int32(p.Target)),
		}
		if p.UDP {
			port.Name, port.Protocol = fmt.Sprintf("udp-%d", p.Port), corev1.ProtocolUDP
		}
		for _, fixed := range nodePorts {
			if fixed.ListenerPort == port.Port {
				port.NodePort = fixed.NodePort
			}
		}
		out[i] = port
	}
	return out
}

// Addresses are those at which clients outside of the cluster reach a Service, if its
// type lets them, and its ClusterIPs. An external IP counts as soon as the Service has
// it: every node takes traffic for it then. Whether the traffic gets to a node depends
// on the network, and Kubernetes does not know that.
func Addresses(s *corev1.Service) (addresses, cluster []string) {
	cluster = slices.DeleteFunc(slices.Clone(s.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone || ip == "" })
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return slices.Concat(cluster, s.Spec.ExternalIPs), cluster
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IP != "" {
			addresses = append(addresses, i.IP)
		}
		if i.Hostname != "" {
			addresses = append(addresses, i.Hostname)
		}
	}
	return append(addresses, s.Spec.ExternalIPs...), cluster
}

// ComparePorts orders ports as a Service has them.
func ComparePorts(a, b Port) int {
	udp := func(p Port) int {
		if p.UDP {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(udp(a), udp(b)))
}
