package envoy

import (
	"fmt"
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// anyName is a service or a method in the path of a gRPC request.
const anyName = "[^/]+"

// callMatch matches gRPC requests by service and method. Envoy tells them by their
// Content-Type, so that gRPC-Web and plain HTTP are not among them.
func callMatch(m *ir.Match) (*routev3.RouteMatch, error) {
	out, err := methodMatch(m)
	if err != nil {
		return nil, fmt.Errorf("method match: %w", err)
	}
	out.Grpc = &routev3.RouteMatch_GrpcRouteMatchOptions{}
	return out, nil
}

// methodMatch compares a path, /service/method. What is empty is any.
func methodMatch(m *ir.Match) (*routev3.RouteMatch, error) {
	service, method := m.Path.Value, m.Method
	exact := m.Path.Kind == ir.Service
	switch {
	case service == "" && method == "":
		return everything(), nil
	case exact && !m.MethodRegex && service != "" && method != "":
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: "/" + service + "/" + method}}, nil
	case exact && service != "" && method == "":
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/" + service + "/"}}, nil
	}
	if m.Wide {
		return callBeginning(m), nil
	}
	re := "/" + nameRegex(exact, service) + "/" + nameRegex(exact && !m.MethodRegex, method)
	if err := checkRegex(re); err != nil {
		return nil, err
	}
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: regex(re)}}, nil
}

// callBeginning matches what a path begins with that an expression stands for.
func callBeginning(m *ir.Match) *routev3.RouteMatch {
	switch service := m.Path.Value; {
	case m.Path.Kind == ir.ServiceRegex:
		return beginning("/" + re2.Literal(service))
	case service != "":
		return beginning("/" + service + "/" + re2.Literal(m.Method))
	default:
		return everything()
	}
}

func nameRegex(exact bool, name string) string {
	switch {
	case name == "":
		return anyName
	case exact:
		return regexp.QuoteMeta(name)
	default:
		return "(?:" + name + ")"
	}
}
