package pipeline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// withPages returns what policies say with the backends that are asked for error pages. Without its backend there is no
// page, and an error stays as it is.
func (p *Pipeline) withPages(c *flow.Ctx, t *ir.Traffic) *ir.Traffic {
	if t == nil || t.ErrorPages == nil {
		return t
	}
	var pages []ir.ErrorPage
	asks := false
	for _, page := range t.ErrorPages.Pages {
		if page.Asked != nil {
			asks = true
			backend, problem := p.Graph.PageBackend(c, "", page.Asked)
			if problem != "" {
				continue
			}
			page.Asked, page.Backend = nil, backend
		}
		pages = append(pages, page)
	}
	if !asks {
		return t
	}
	out := *t
	out.ErrorPages = &ir.ErrorPages{Pages: pages}
	return &out
}

// trafficAccepted returns whether a policy is accepted on a Gateway, which depends on the backends that are asked for its
// error pages.
func (p *Pipeline) trafficAccepted(c *flow.Ctx, n *traffic.Policy, a topology.Ancestor) (metav1.Condition, string) {
	if a.Accepted.Status != metav1.ConditionTrue {
		return a.Accepted, ""
	}
	var problems []string
	n.Asked(func(field string, ref *ir.PageReference) {
		backend, problem := p.Graph.PageBackend(c, field, ref)
		if problem == "" {
			if problem = p.unaskable(c, BackendKey{a.Gateway, backend}); problem != "" {
				problem = field + ": " + problem
			}
		}
		if problem != "" {
			problems = append(problems, problem)
		}
	})
	if len(problems) > 0 {
		return condition.TrafficPolicyInvalid(problems), ""
	}
	return a.Accepted, ""
}
