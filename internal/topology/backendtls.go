package topology

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// BackendTLSPolicy is a policy, whatever it is for. What a refused one targets can't be
// reached.
type BackendTLSPolicy struct {
	policy.Node[ir.BackendTLS]
	Object       *gwv1.BackendTLSPolicy
	ResolvedRefs metav1.Condition
}

// Equal reports whether two nodes say the same of the same object.
func (p *BackendTLSPolicy) Equal(o *BackendTLSPolicy) bool {
	return p.Object == o.Object && p.ResolvedRefs == o.ResolvedRefs && p.Node.Equal(&o.Node)
}

// backendTLSKind describes BackendTLSPolicies.
var backendTLSKind = policy.Kind[*BackendTLSPolicy, ir.BackendTLS]{
	Kind:       kind.BackendTLSPolicy,
	Node:       func(p *BackendTLSPolicy) *policy.Node[ir.BackendTLS] { return &p.Node },
	Accepted:   condition.PolicyAccepted(),
	Conflicted: condition.PolicyConflicted,
}

func (g *Graph) declareBackendTLSPolicies() flow.Table[object.Name, *BackendTLSPolicy] {
	return flow.Map("topology-backend-tls-policies", g.in.BackendTLSPolicies,
		func(c *flow.Ctx, k object.Name, o *gwv1.BackendTLSPolicy, emit func(object.Name, *BackendTLSPolicy)) {
			emit(k, g.backendTLSPolicy(c, k, o))
		})
}

// backendTLSPolicy makes the node of a policy, and checks all of it except its targets.
func (g *Graph) backendTLSPolicy(c *flow.Ctx, name object.Name, o *gwv1.BackendTLSPolicy) *BackendTLSPolicy {
	v := &o.Spec.Validation
	p := &BackendTLSPolicy{Object: o, ResolvedRefs: condition.PolicyResolvedRefs()}
	p.Name, p.Created, p.Targets = name, o.CreationTimestamp.Time, backendTLSTargets(o)
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
	p.Asks = ir.BackendTLS{
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

// backendTLSTargets are the Services that a policy targets, or their ports.
func backendTLSTargets(o *gwv1.BackendTLSPolicy) []policy.Target {
	var out []policy.Target
	for _, t := range o.Spec.TargetRefs {
		if of := object.KindOf(string(t.Group), string(t.Kind)); kind.IsService(of) {
			out = append(out, policy.Target{
				Key:     object.Key{Kind: of, Name: name(o.Namespace, string(t.Name))},
				Section: string(valueOr(t.SectionName, "")),
			})
		}
	}
	return out
}
