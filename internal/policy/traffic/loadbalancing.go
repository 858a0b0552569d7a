package traffic

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

var balancers = map[v1alpha1.LoadBalancingType]ir.Balancer{
	v1alpha1.LeastRequestLoadBalancing:   ir.LeastRequest,
	v1alpha1.RoundRobinLoadBalancing:     ir.RoundRobin,
	v1alpha1.RandomLoadBalancing:         ir.Random,
	v1alpha1.ConsistentHashLoadBalancing: ir.ConsistentHash,
}

func (r *reader) loadBalancing(in *v1alpha1.LoadBalancing, out *ir.Traffic) {
	balancer, ok := balancers[in.Type]
	if !ok {
		r.Problem(".type", "is %q; write RoundRobin, LeastRequest, Random or ConsistentHash", in.Type)
		return
	}
	l := &ir.LoadBalancing{Balancer: balancer}
	out.LoadBalancing = l
	if in.SlowStart != nil {
		l.SlowStart = r.after(".slowStart", in.SlowStart, 0, time.Millisecond)
		if balancer != ir.LeastRequest && balancer != ir.RoundRobin {
			r.Problem(".slowStart", "stands beside type: %s; leave it out, or write LeastRequest or RoundRobin", in.Type)
		}
	}
	switch hash := in.ConsistentHash; {
	case balancer != ir.ConsistentHash && hash != nil:
		r.Problem(".consistentHash", "stands beside type: %s; leave it out, or write type: ConsistentHash", in.Type)
	case balancer == ir.ConsistentHash && hash == nil:
		r.Problem(".consistentHash", "is missing; with type: ConsistentHash it says what requests have in common that go to the same endpoint")
	case hash != nil:
		r.Field += ".consistentHash"
		l.Hash = r.hash(hash)
		l.RingSize = r.number(".ringSize", hash.RingSize, 0, 1, 1<<16)
		switch hash.Algorithm {
		case "", v1alpha1.RingHash:
		case v1alpha1.MaglevHash:
			if l.Balancer = ir.Maglev; hash.RingSize != nil {
				r.Problem(".ringSize", "stands beside algorithm: Maglev, which has no ring; leave it out")
			}
		default:
			r.Problem(".algorithm", "is %q; write Ring or Maglev", hash.Algorithm)
		}
	}
}

// hash reads what requests have in common.
func (r *reader) hash(in *v1alpha1.ConsistentHash) *ir.Hash {
	out := &ir.Hash{}
	known := false
	for _, of := range []struct {
		name  v1alpha1.ConsistentHashType
		field string // that says which one; empty where there is only one
		has   bool
	}{
		{v1alpha1.HeaderHash, ".header", in.Header != nil},
		{v1alpha1.CookieHash, ".cookie", in.Cookie != nil},
		{v1alpha1.QueryParamHash, ".queryParam", in.QueryParam != nil},
		{v1alpha1.SourceIPHash, "", false},
	} {
		switch {
		case of.name != in.Type:
			if of.has {
				r.Problem(of.field, "stands beside type: %s; leave it out", in.Type)
			}
		case of.field != "" && !of.has:
			r.Problem(of.field, "is missing; with type: %s it says which one", in.Type)
			return nil
		default:
			known = true
		}
	}
	if !known {
		r.Problem(".type", "is %q; write Header, Cookie, SourceIP or QueryParam", in.Type)
		return nil
	}
	switch in.Type {
	case v1alpha1.HeaderHash:
		out.Header = strings.ToLower(string(in.Header.Name))
		if !ir.IsToken(out.Header) {
			r.Problem(".header.name", "is %q, which is no name of a header", in.Header.Name)
		}
	case v1alpha1.CookieHash:
		r.cookie(in.Cookie, out)
	case v1alpha1.QueryParamHash:
		if out.QueryParam = in.QueryParam.Name; out.QueryParam == "" {
			r.Problem(".queryParam.name", "is empty; write the name of a parameter of the query")
		}
	case v1alpha1.SourceIPHash:
		out.SourceIP = true
	}
	return out
}

// cookie reads the cookie that clients are given.
func (r *reader) cookie(in *v1alpha1.HashCookie, out *ir.Hash) {
	if out.Cookie = in.Name; !ir.IsToken(out.Cookie) {
		r.Problem(".cookie.name", "is %q, which is no name of a cookie", in.Name)
	}
	if in.TTL != nil {
		var err error
		if out.CookieTTL, err = time.ParseDuration(string(*in.TTL)); err != nil || out.CookieTTL < time.Second {
			r.Problem(".cookie.ttl", "is %q; write a time of at least 1s, such as 1h, or leave it out", *in.TTL)
		}
	}
	out.Path, out.SameSite = "/", string(v1alpha1.SameSiteLax)
	if in.Path != nil {
		out.Path = *in.Path
	}
	if in.SameSite != nil {
		out.SameSite = string(*in.SameSite)
	}
	if out.SameSite == string(v1alpha1.SameSiteNone) && r.ofService {
		r.Problem(".cookie.sameSite", "is None, which needs a cookie that is Secure, and for a Service it is not, since routes over HTTP may lead there; write a policy for routes over HTTPS")
	}
	if in.Domain != nil {
		out.Domain = string(*in.Domain)
	}
}
