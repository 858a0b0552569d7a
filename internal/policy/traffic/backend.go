package traffic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// number reads a number within bounds; the default where there is none.
func (r *reader) number(field string, in *int32, otherwise, least, most uint32) uint32 {
	if in == nil {
		return otherwise
	}
	if *in < 0 || uint32(*in) < least || uint32(*in) > most {
		r.Problem(field, "is %d; write %d to %d", *in, least, most)
		return otherwise
	}
	return uint32(*in)
}

// maxAtOnce is how many connections and requests a backend may have at once, which is Gatehouse's default: more
// than that would not protect the proxy.
const maxAtOnce = 65536

// maxCheckTimeout bounds a check: a proxy that starts waits for the first results of all.
const maxCheckTimeout = 10 * time.Second

// maxNumber is more than any number of connections and requests.
const maxNumber = 1<<31 - 1

// after reads a time of at least so long; the default where there is none.
func (r *reader) after(field string, in *gwv1.Duration, otherwise, least time.Duration) time.Duration {
	if in == nil {
		return otherwise
	}
	return r.duration(field, *in, least, "a time of at least "+least.String()+", such as 30s")
}

func (r *reader) connectTimeout(in *gwv1.Duration, out *ir.Traffic) {
	out.ConnectTimeout = new(r.duration("", *in, time.Millisecond, "a time such as 500ms or 5s"))
}

func (r *reader) routingType(in *v1alpha1.RoutingType, out *ir.Traffic) {
	out.ClusterIP = new(*in == v1alpha1.RoutingService)
	if *in != v1alpha1.RoutingService && *in != v1alpha1.RoutingEndpoint {
		r.Problem("", "is %q; write Endpoint or Service", *in)
	}
}

func (r *reader) clusters(in *v1alpha1.BackendClusters, out *ir.Traffic) {
	if in.Equal {
		if out.Clusters = new(ir.Clusters); len(in.Order) > 0 {
			r.Problem(".equal", "is true, and has all clusters be alike; leave out either it or order")
		}
		return
	}
	if len(in.Order) == 0 || len(in.Order) > ir.MaxClusters {
		r.Problem(".order", "has %d clusters; name 1 to %d", len(in.Order), ir.MaxClusters)
		return
	}
	var shares []ir.ClusterShare
	for i, c := range in.Order {
		field := fmt.Sprintf(".order[%d]", i)
		if c.Name == "" || slices.ContainsFunc(shares, func(s ir.ClusterShare) bool { return s.Name == c.Name }) {
			r.Problem(field+".name", "is %q; name each cluster once", c.Name)
			continue
		}
		shares = append(shares, ir.ClusterShare{
			Name:     c.Name,
			Weight:   r.number(field+".weight", c.Weight, 1, 0, 1_000_000),
			Priority: r.number(field+".priority", c.Priority, 0, 0, ir.MaxClusters-1),
		})
	}
	out.Clusters = new(ir.ClustersOf(shares))
}

func (r *reader) connections(in *v1alpha1.BackendConnections, out *ir.Traffic) {
	out.Connections = &ir.Connections{
		MaxRequests: r.number(".maxRequests", in.MaxRequests, 0, 1, maxNumber),
		IdleTimeout: r.after(".idleTimeout", in.IdleTimeout, 0, time.Millisecond),
		KeepAlive:   r.after(".keepAlive", in.KeepAlive, 0, time.Second).Truncate(time.Second),
	}
	if *in == (v1alpha1.BackendConnections{}) {
		r.Problem("", "says nothing; write maxRequests, idleTimeout or keepAlive")
	}
}

func (r *reader) circuitBreaker(in *v1alpha1.CircuitBreaker, out *ir.Traffic) {
	out.CircuitBreaker = &ir.CircuitBreaker{
		Connections: r.number(".maxConnections", in.MaxConnections, 0, 1, maxAtOnce),
		Pending:     r.number(".maxPendingRequests", in.MaxPendingRequests, 0, 1, maxAtOnce),
		Requests:    r.number(".maxRequests", in.MaxRequests, 0, 1, maxAtOnce),
	}
	if *in == (v1alpha1.CircuitBreaker{}) {
		r.Problem("", "bounds nothing; write maxConnections, maxPendingRequests or maxRequests")
	}
}

// The defaults of a budget, which are those of backends without one.
const (
	budgetPercent = 20
	budgetFloor   = 64
)

func (r *reader) retryBudget(in *v1alpha1.RetryBudget, out *ir.Traffic) {
	out.RetryBudget = &ir.RetryBudget{
		Percent: r.number(".percent", in.Percent, budgetPercent, 0, 100),
		Floor:   r.number(".minRetries", in.MinRetries, budgetFloor, 1, 1_000_000),
	}
}

func (r *reader) outlierDetection(in *v1alpha1.OutlierDetection, out *ir.Traffic) {
	out.OutlierDetection = &ir.OutlierDetection{}
	if in.Disabled {
		if *in != (v1alpha1.OutlierDetection{Disabled: true}) {
			r.Problem(".disabled", "is true, and has all endpoints get requests; leave out either it or what stands beside it")
		}
		return
	}
	*out.OutlierDetection = ir.OutlierDetection{
		Errors:     r.number(".consecutiveErrors", in.ConsecutiveErrors, 5, 1, 1_000_000),
		Interval:   r.after(".interval", in.Interval, 10*time.Second, 100*time.Millisecond),
		Ejection:   r.after(".ejectionTime", in.EjectionTime, 30*time.Second, 100*time.Millisecond),
		MaxPercent: r.number(".maxEjectedPercent", in.MaxEjectedPercent, 50, 1, 100),
	}
}

var (
	checkPath = regexp.MustCompile(`^/[!-~]*$`)
	checkName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
)

func (r *reader) healthCheck(in *v1alpha1.HealthCheck, out *ir.Traffic) {
	h := &ir.HealthCheck{}
	out.HealthCheck = h
	if in.Disabled {
		if *in != (v1alpha1.HealthCheck{Disabled: true}) {
			r.Problem(".disabled", "is true, and asks nothing; leave out either it or what stands beside it")
		}
		return
	}
	*h = ir.HealthCheck{
		Type:      ir.HealthCheckType(in.Type),
		Interval:  r.after(".interval", in.Interval, 10*time.Second, 100*time.Millisecond),
		Timeout:   r.after(".timeout", in.Timeout, time.Second, time.Millisecond),
		Unhealthy: r.number(".unhealthyThreshold", in.UnhealthyThreshold, 3, 1, 100),
		Healthy:   r.number(".healthyThreshold", in.HealthyThreshold, 1, 1, 100),
	}
	if h.Timeout > maxCheckTimeout {
		r.Problem(".timeout", "is %q; write at most %s, since a proxy that starts waits for it", *in.Timeout, maxCheckTimeout)
	}
	if in.HTTP != nil && in.Type != v1alpha1.HTTPCheck || in.GRPC != nil && in.Type != v1alpha1.GRPCCheck {
		r.Problem(".type", "is %s, and what stands beside it is of another type", in.Type)
	}
	switch in.Type {
	case v1alpha1.HTTPCheck:
		http := ptr.Deref(in.HTTP, v1alpha1.HTTPHealthCheck{})
		if h.Path, h.Hostname = cmp.Or(http.Path, "/"), http.Hostname; !checkPath.MatchString(h.Path) {
			r.Problem(".http.path", "is %q; write a path that begins with /, such as /healthz", h.Path)
		}
		if !checkName.MatchString(h.Hostname) {
			r.Problem(".http.hostname", "is %q, which is no hostname", h.Hostname)
		}
	case v1alpha1.GRPCCheck:
		if h.Service = ptr.Deref(in.GRPC, v1alpha1.GRPCHealthCheck{}).Service; !checkName.MatchString(h.Service) {
			r.Problem(".grpc.service", "is %q, which is no name of a service", h.Service)
		}
	case v1alpha1.TCPCheck:
	default:
		r.Problem(".type", "is %q; write HTTP, GRPC or TCP", in.Type)
	}
}
