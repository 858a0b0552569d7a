package topology

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// BackendTLSPolicy is a policy, whatever it is for.
type BackendTLSPolicy struct {
	Name   object.Name
	Object *gwv1.BackendTLSPolicy
	// Refused, where set, is why the policy can't be used: an Accepted condition.
	// What it targets can't be reached then.
	Refused      *metav1.Condition
	ResolvedRefs metav1.Condition
	// TLS is what the policy asks for; zero where it is refused.
	TLS ir.BackendTLS
}

// Equal reports whether two nodes say the same of the same object.
func (p *BackendTLSPolicy) Equal(o *BackendTLSPolicy) bool {
	return p.Object == o.Object && p.Name == o.Name && p.ResolvedRefs == o.ResolvedRefs &&
		samePointed(p.Refused, o.Refused) && p.TLS == o.TLS
}

func (g *Graph) declareBackendTLSPolicies() flow.Table[object.Name, *BackendTLSPolicy] {
	return flow.Map("topology-backend-tls-policies", g.in.BackendTLSPolicies,
		func(c *flow.Ctx, k object.Name, o *gwv1.BackendTLSPolicy, emit func(object.Name, *BackendTLSPolicy)) {
			emit(k, g.backendTLSPolicy(c, k, o))
		})
}

// backendTLSPolicy judges a policy, its targets aside.
func (g *Graph) backendTLSPolicy(c *flow.Ctx, name object.Name, o *gwv1.BackendTLSPolicy) *BackendTLSPolicy {
	v := &o.Spec.Validation
	p := &BackendTLSPolicy{Name: name, Object: o, ResolvedRefs: condition.PolicyResolvedRefs()}
	var authorities []object.Key
	var problems []metav1.Condition
	for i, r := range v.CACertificateRefs {
		if ref, problem := g.backendAuthority(c, o, i, r); problem != nil {
			problems = append(problems, *problem)
		} else {
			authorities = append(authorities, ref)
		}
	}
	if len(problems) > 0 {
		p.ResolvedRefs = condition.PolicyNotResolved(problems)
	}
	refuse := func(c metav1.Condition) *BackendTLSPolicy {
		p.Refused = &c
		return p
	}
	if key := firstOption(o.Spec.Options); key != "" {
		return refuse(condition.PolicyUnknownOption(key))
	}
	system := valueOr(v.WellKnownCACertificates, "")
	switch {
	case v.Hostname == "":
		return refuse(condition.PolicyInvalid("spec.validation.hostname", "is missing"))
	case len(v.CACertificateRefs) > 0 && system != "":
		return refuse(condition.PolicyInvalid("spec.validation", "has both caCertificateRefs and wellKnownCACertificates; leave one of them"))
	case len(v.CACertificateRefs) > 0 && len(authorities) == 0:
		return refuse(condition.PolicyNoValidAuthority(p.ResolvedRefs))
	case len(v.CACertificateRefs) > 0:
	case system == "":
		return refuse(condition.PolicyInvalid("spec.validation", "trusts nobody; set caCertificateRefs, or wellKnownCACertificates to System"))
	case system != gwv1.WellKnownCACertificatesSystem:
		return refuse(condition.PolicyInvalid("spec.validation.wellKnownCACertificates", "knows only System"))
	case g.options.SystemAuthorities == "":
		return refuse(condition.PolicyNoSystemAuthorities())
	default:
		authorities = []object.Key{SystemAuthorities}
	}
	for _, san := range v.SubjectAltNames {
		if problem := checkSubjectAltName(san); problem != "" {
			return refuse(condition.PolicyInvalid("spec.validation.subjectAltNames", problem))
		}
	}
	p.TLS = ir.BackendTLS{
		ServerName:  string(v.Hostname),
		Names:       backendNames(v),
		Authorities: ir.Authorities(authorities...),
	}
	return p
}

// backendNames are the names of which a backend's certificate must have one. The
// hostname authenticates the backend unless there are others.
func backendNames(v *gwv1.BackendTLSPolicyValidation) ir.List[ir.CertificateName] {
	if len(v.SubjectAltNames) == 0 {
		return ir.ListOf(ir.CertificateName{DNS: string(v.Hostname)})
	}
	names := make([]ir.CertificateName, len(v.SubjectAltNames))
	for i, san := range v.SubjectAltNames {
		if san.Type == gwv1.URISubjectAltNameType {
			names[i].URI = string(san.URI)
		} else {
			names[i].DNS = string(san.Hostname)
		}
	}
	return ir.ListOf(names...)
}

// firstOption returns the first of our keys, so that messages stay the same; empty
// where there is none. A BackendTLSPolicy has no options of ours.
func firstOption(options map[gwv1.AnnotationKey]gwv1.AnnotationValue) string {
	first := ""
	for key := range options {
		if k := string(key); strings.HasPrefix(k, ourOptions) && (first == "" || k < first) {
			first = k
		}
	}
	return first
}

// backendAuthority follows a policy's reference to certificates of authorities.
func (g *Graph) backendAuthority(c *flow.Ctx, o *gwv1.BackendTLSPolicy, index int, r gwv1.LocalObjectReference) (object.Key, *metav1.Condition) {
	ref, ok := backendAuthorityRef(o, r)
	if !ok {
		problem := condition.PolicyAuthorityKind(index, kindText(r.Group, r.Kind), string(r.Name))
		return ref, &problem
	}
	authority, ok := flow.Get(c, g.Authorities, ref)
	if !ok {
		problem := condition.PolicyAuthorityMissing(index, ref.String(), g.unread(c, ref.Kind))
		return ref, &problem
	}
	if authority.Problem != "" {
		problem := condition.PolicyAuthorityInvalid(index, ref.String(), authority.Problem)
		return ref, &problem
	}
	return ref, nil
}

// checkSubjectAltName says what is wrong with a name; empty where nothing is.
func checkSubjectAltName(san gwv1.SubjectAltName) string {
	switch {
	case san.Type == gwv1.HostnameSubjectAltNameType && san.Hostname == "":
		return "has a name of type Hostname without a hostname"
	case san.Type == gwv1.URISubjectAltNameType && san.URI == "":
		return "has a name of type URI without a uri"
	case san.Type != gwv1.HostnameSubjectAltNameType && san.Type != gwv1.URISubjectAltNameType:
		return "knows the types Hostname and URI only"
	}
	return ""
}

// policyTarget is what a policy is attached to: a Service, or one port of it.
type policyTarget struct {
	service object.Name
	section string // the port's name; empty for all ports
}

// serviceTargets yields the Services that a policy targets, with their sections.
func serviceTargets(o *gwv1.BackendTLSPolicy, yield func(policyTarget)) {
	for _, t := range o.Spec.TargetRefs {
		if t.Group == "" && t.Kind == "Service" {
			yield(policyTarget{name(o.Namespace, string(t.Name)), string(valueOr(t.SectionName, ""))})
		}
	}
}

// servicePolicies are the policies that apply to a Service, by section; for each
// section the one that takes precedence.
type servicePolicies struct {
	winners []servicePolicy // sorted by section
	traffic *TrafficPolicy  // nil for none
}

type servicePolicy struct {
	section string
	policy  *BackendTLSPolicy
}

// Equal reports whether the same policies say the same of the same ports.
func (s *servicePolicies) Equal(o *servicePolicies) bool {
	return s.traffic.says(o.traffic) && slices.EqualFunc(s.winners, o.winners, func(a, b servicePolicy) bool {
		// The object is not compared: its status, or what it says of others, is
		// none of the Service's routes' business.
		return a.section == b.section && a.policy.Name == b.policy.Name &&
			samePointed(a.policy.Refused, b.policy.Refused) && a.policy.TLS == b.policy.TLS
	})
}

// of returns the policy of a section; nil where there is none.
func (s *servicePolicies) of(section string) *BackendTLSPolicy {
	i, ok := slices.BinarySearchFunc(s.winners, section, func(w servicePolicy, section string) int {
		return strings.Compare(w.section, section)
	})
	if !ok {
		return nil
	}
	return s.winners[i].policy
}

// port returns the policy of a port: the one that names it comes before the one
// for all ports.
func (s *servicePolicies) port(name string) *BackendTLSPolicy {
	if name != "" {
		if p := s.of(name); p != nil {
			return p
		}
	}
	return s.of("")
}

// precedes reports whether a policy takes precedence over another for the same
// target.
func (p *BackendTLSPolicy) precedes(o *BackendTLSPolicy) bool {
	return seniority(p.Object, o.Object) < 0
}

// seniority orders policies by precedence: the older comes first, and of two that
// are of an age the one whose name does.
func seniority(a, b metav1.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		name(a.GetNamespace(), a.GetName()).Compare(name(b.GetNamespace(), b.GetName())))
}

// anyPolicy is a policy of either kind.
type anyPolicy struct {
	tls     *BackendTLSPolicy
	traffic *TrafficPolicy
}

func (p anyPolicy) targets(yield func(policyTarget)) {
	if p.tls != nil {
		serviceTargets(p.tls.Object, yield)
	} else {
		trafficTargets(p.traffic, yield)
	}
}

// policyKey names a policy of either kind.
type policyKey struct {
	traffic bool
	object.Name
}

func (k policyKey) compare(o policyKey) int {
	switch {
	case k.traffic == o.traffic:
		return k.Name.Compare(o.Name)
	case o.traffic:
		return -1
	default:
		return 1
	}
}

// declareServicePolicies finds the policies of every Service that has some.
func (g *Graph) declareServicePolicies() flow.Table[object.Name, *servicePolicies] {
	tls := flow.Map("topology-tls-policies-by-kind", g.BackendTLSPolicies,
		func(_ *flow.Ctx, k object.Name, p *BackendTLSPolicy, emit func(policyKey, anyPolicy)) {
			emit(policyKey{Name: k}, anyPolicy{tls: p})
		}, flow.Equal(flow.Same[anyPolicy]))
	traffic := flow.Map("topology-traffic-policies-by-kind", g.TrafficPolicies,
		func(_ *flow.Ctx, k object.Name, p *TrafficPolicy, emit func(policyKey, anyPolicy)) {
			emit(policyKey{true, k}, anyPolicy{traffic: p})
		}, flow.Equal(flow.Same[anyPolicy]))
	byService := flow.NewIndex(tls,
		func(_ policyKey, p anyPolicy, yield func(object.Name)) {
			p.targets(func(t policyTarget) { yield(t.service) })
		}, policyKey.compare)
	byService.Also(traffic)
	return flow.Group("topology-service-policies", byService,
		func(_ *flow.Ctx, service object.Name, members flow.Members[policyKey, anyPolicy]) (*servicePolicies, bool) {
			winners := map[string]*BackendTLSPolicy{}
			out := &servicePolicies{}
			for _, p := range members.All() {
				if p.traffic != nil {
					if out.traffic == nil || p.traffic.precedes(out.traffic) {
						out.traffic = p.traffic
					}
					continue
				}
				serviceTargets(p.tls.Object, func(t policyTarget) {
					if t.service != service {
						return
					}
					if w := winners[t.section]; w == nil || p.tls.precedes(w) {
						winners[t.section] = p.tls
					}
				})
			}
			for section, p := range winners {
				out.winners = append(out.winners, servicePolicy{section, p})
			}
			slices.SortFunc(out.winners, func(a, b servicePolicy) int { return strings.Compare(a.section, b.section) })
			return out, true
		})
}

// bucket is some of the Services of a namespace. References look for policies only
// where their bucket has some: hardly any Service has one, and every look is
// remembered. There are many buckets, so that the first policy of one and the end
// of its last wake few.
type bucket struct {
	namespace string
	number    uint8
}

func bucketOf(service object.Name) bucket {
	return bucket{service.Namespace, uint8(xxhash.Sum64String(service.Name))} //nolint:gosec // a part of the hash
}

func (g *Graph) declarePolicyBuckets() flow.Table[bucket, struct{}] {
	return flow.Keys("topology-policy-buckets",
		func(service object.Name, _ *servicePolicies, yield func(bucket)) { yield(bucketOf(service)) }, g.policies)
}

// policiesOf returns the policies of a Service; nil for most.
func (g *Graph) policiesOf(c *flow.Ctx, service object.Name) *servicePolicies {
	if _, some := flow.Get(c, g.policyBuckets, bucketOf(service)); !some {
		return nil
	}
	p, _ := flow.Get(c, g.policies, service)
	return p
}

// encrypt gives a port the TLS that its policy asks for, or returns a problem. A
// backend whose policy can't be met is not spoken to.
func (s *servicePolicies) encrypt(p *servicePort, field func() string) *metav1.Condition {
	if s == nil || p.Use == ir.UseUDP {
		return nil
	}
	policy := s.port(p.PortName)
	if policy == nil {
		return nil
	}
	if policy.Refused != nil {
		c := condition.BackendPolicyRefused(field(), p.Object.Name.String(), policy.Name.String(), policy.Refused.Message)
		return &c
	}
	p.TLS = policy.TLS
	return nil
}
