package schema

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	serviceTypes = []corev1.ServiceType{
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName,
	}
	protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
)

// finishService applies the API server's defaults and rules for what routing
// depends on: type, external name and ports.
func finishService(svc *corev1.Service) field.ErrorList {
	svc.Status = corev1.ServiceStatus{}
	if svc.Spec.Type == "" {
		svc.Spec.Type = corev1.ServiceTypeClusterIP
	}
	if svc.Spec.SessionAffinity == "" {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}

	spec := field.NewPath("spec")
	var errs field.ErrorList
	if !slices.Contains(serviceTypes, svc.Spec.Type) {
		errs = append(errs, field.NotSupported(spec.Child("type"), svc.Spec.Type, serviceTypes))
	}
	external := svc.Spec.Type == corev1.ServiceTypeExternalName
	headless := svc.Spec.ClusterIP == corev1.ClusterIPNone
	if external {
		errs = append(errs, checkExternalName(spec.Child("externalName"), svc.Spec.ExternalName)...)
	}
	if ip := svc.Spec.ClusterIP; ip != "" && !headless {
		errs = append(errs, validation.IsValidIP(spec.Child("clusterIP"), ip)...)
	}
	if len(svc.Spec.Ports) == 0 && !external && !headless {
		errs = append(errs, field.Required(spec.Child("ports"), "a Service has at least one port"))
	}
	return append(errs, checkServicePorts(spec.Child("ports"), svc.Spec.Ports)...)
}

func checkExternalName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a Service of type ExternalName names a host")}
	}
	if msgs := validation.IsDNS1123Subdomain(strings.TrimSuffix(name, ".")); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(msgs, "; "))}
	}
	return nil
}

func checkServicePorts(path *field.Path, ports []corev1.ServicePort) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	numbers := sets.New[string]()
	for i, port := range ports {
		at := path.Index(i)
		switch {
		case port.Name == "" && len(ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), "each port of a Service with several ports has a name"))
		case port.Name != "":
			errs = append(errs, messages(at.Child("name"), port.Name, validation.IsDNS1123Label(port.Name))...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, messages(at.Child("port"), int64(port.Port), validation.IsValidPortNum(int(port.Port)))...)
		number := fmt.Sprintf("%s/%d", port.Protocol, port.Port)
		if numbers.Has(number) {
			errs = append(errs, field.Duplicate(at, number))
		}
		numbers.Insert(number)
		errs = append(errs, checkProtocol(at.Child("protocol"), port.Protocol)...)
		target := at.Child("targetPort")
		if port.TargetPort.Type == intstr.Int {
			errs = append(errs, messages(target, int64(port.TargetPort.IntVal), validation.IsValidPortNum(int(port.TargetPort.IntVal)))...)
		} else {
			errs = append(errs, messages(target, port.TargetPort.StrVal, validation.IsValidPortName(port.TargetPort.StrVal))...)
		}
		if port.AppProtocol != nil {
			errs = append(errs, messages(at.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))...)
		}
	}
	return errs
}

func checkProtocol(path *field.Path, protocol corev1.Protocol) field.ErrorList {
	if slices.Contains(protocols, protocol) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, protocol, protocols)}
}

// messages makes an error of each message that apimachinery's checks return.
func messages(path *field.Path, value any, texts []string) field.ErrorList {
	var errs field.ErrorList
	for _, text := range texts {
		errs = append(errs, field.Invalid(path, value, text))
	}
	return errs
}
