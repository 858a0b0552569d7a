package schema

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finishPod checks what is read of a Pod. In files the status, which a kubelet writes in a cluster, says where the Pod
// is, so that it stays, and the containers may be left out.
func finishPod(p *corev1.Pod) field.ErrorList {
	status := field.NewPath("status")
	var errs field.ErrorList
	if ip := p.Status.PodIP; ip != "" {
		errs = append(errs, validation.IsValidIP(status.Child("podIP"), ip)...)
	}
	for i, ip := range p.Status.PodIPs {
		errs = append(errs, validation.IsValidIP(status.Child("podIPs").Index(i).Child("ip"), ip.IP)...)
	}
	p.Spec = corev1.PodSpec{}
	return errs
}
