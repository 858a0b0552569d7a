package schema

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API server's limits for one slice.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxPorts     = 20000
)

var addressTypes = []discoveryv1.AddressType{
	discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN,
}

// finishEndpointSlice applies the API server's defaults and rules, but for one:
// loopback and link-local addresses pass, since a proxy on this machine may well
// serve a backend on this machine.
func finishEndpointSlice(slice *discoveryv1.EndpointSlice) field.ErrorList {
	for i := range slice.Ports {
		port := &slice.Ports[i]
		if port.Name == nil {
			port.Name = new(string)
		}
		if port.Protocol == nil {
			tcp := corev1.ProtocolTCP
			port.Protocol = &tcp
		}
	}

	var errs field.ErrorList
	check := checkIPv4
	switch slice.AddressType {
	case discoveryv1.AddressTypeIPv4:
	case discoveryv1.AddressTypeIPv6:
		check = checkIPv6
	case discoveryv1.AddressTypeFQDN:
		check = checkFQDN
	case "":
		return field.ErrorList{field.Required(field.NewPath("addressType"), "one of IPv4, IPv6, FQDN")}
	default:
		return field.ErrorList{field.NotSupported(field.NewPath("addressType"), slice.AddressType, addressTypes)}
	}

	path := field.NewPath("endpoints")
	if len(slice.Endpoints) > maxEndpoints {
		errs = append(errs, field.TooMany(path, len(slice.Endpoints), maxEndpoints))
	}
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		at := path.Index(i)
		switch n := len(endpoint.Addresses); {
		case n == 0:
			errs = append(errs, field.Required(at.Child("addresses"), "an endpoint has at least one address"))
		case n > maxAddresses:
			errs = append(errs, field.TooMany(at.Child("addresses"), n, maxAddresses))
		}
		for j, address := range endpoint.Addresses {
			if text := check(address); text != "" {
				errs = append(errs, field.Invalid(at.Child("addresses").Index(j), address, text))
			}
		}
		if endpoint.Hostname != nil {
			errs = append(errs, messages(at.Child("hostname"), *endpoint.Hostname, validation.IsDNS1123Label(*endpoint.Hostname))...)
		}
	}
	return append(errs, checkEndpointPorts(field.NewPath("ports"), slice.Ports)...)
}

func checkIPv4(address string) string {
	if ip, err := netip.ParseAddr(address); err != nil || !ip.Is4() {
		return "must be an IPv4 address: a slice holds addresses of its addressType only"
	}
	return ""
}

func checkIPv6(address string) string {
	if ip, err := netip.ParseAddr(address); err != nil || !ip.Is6() || ip.Is4In6() || ip.Zone() != "" {
		return "must be an IPv6 address: a slice holds addresses of its addressType only"
	}
	return ""
}

func checkFQDN(address string) string {
	if errs := validation.IsFullyQualifiedName(nil, address); len(errs) > 0 {
		return "must be a fully qualified host name such as db.example.com"
	}
	return ""
}

func checkEndpointPorts(path *field.Path, ports []discoveryv1.EndpointPort) field.ErrorList {
	var errs field.ErrorList
	if len(ports) > maxPorts {
		errs = append(errs, field.TooMany(path, len(ports), maxPorts))
	}
	names := sets.New[string]()
	for i, port := range ports {
		at := path.Index(i)
		name := *port.Name
		if name != "" {
			errs = append(errs, messages(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names.Has(name) {
			errs = append(errs, &field.Error{
				Type: field.ErrorTypeDuplicate, Field: at.Child("name").String(), BadValue: name,
				Detail: fmt.Sprintf("the ports of a slice have different names (%d ports here)", len(ports)),
			})
		}
		names.Insert(name)
		errs = append(errs, checkProtocol(at.Child("protocol"), *port.Protocol)...)
		if port.Port != nil {
			errs = append(errs, messages(at.Child("port"), int64(*port.Port), validation.IsValidPortNum(int(*port.Port)))...)
		}
		if port.AppProtocol != nil {
			errs = append(errs, messages(at.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol))...)
		}
	}
	return errs
}
