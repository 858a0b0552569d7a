package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RateLimitPolicy says how many requests are let through in a time. Each proxy counts by
// itself and asks nobody, or all proxies of a Gateway count together. A limit that is broken
// limits nothing, and all others stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ratelimitpolicies,singular=ratelimitpolicy,categories=gateway-api,shortName=rlp
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRefs[0].kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.spec.targetSelectors[0].matchLabels`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RateLimitPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RateLimitPolicySpec `json:"spec"`

	// +optional
	Status gwv1.PolicyStatus `json:"status,omitzero"`
}

// RateLimitPolicyList is a list of RateLimitPolicies.
//
// +kubebuilder:object:root=true
type RateLimitPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RateLimitPolicy `json:"items"`
}

// RateLimitPolicySpec is what a policy is for, and what it says. Its limits stand in defaults,
// in overrides, or beside the targets, which is the same as defaults with the strategy atomic.
//
// +kubebuilder:validation:XValidation:rule="[has(self.defaults), has(self.overrides), has(self.limits)].filter(x, x).size() == 1",message="limits stand in defaults, in overrides, or beside targetRefs, in one of them"
// +kubebuilder:validation:XValidation:rule="has(self.targetRefs) || has(self.targetSelectors)",message="a RateLimitPolicy needs targetRefs or targetSelectors, which say what it is for"
type RateLimitPolicySpec struct {
	// TargetRefs are what the policy is for, in its own namespace: Gateways and ListenerSets,
	// or one of their listeners by sectionName, HTTPRoutes and GRPCRoutes, or one of their
	// rules by its name. Each of them is counted alone, and all that is below it together.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="a RateLimitPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitzero"`

	// TargetSelectors are what the policy is for besides, by labels. At least one of targetRefs and
	// targetSelectors is needed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="a RateLimitPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetSelectors []TargetSelector `json:"targetSelectors,omitzero"`

	// Defaults give way to policies with more specific targets. Without any limits, {}, the policy is
	// invalid and takes the place of no other: to limit nothing, write a limit with unlimited: {}.
	// +optional
	Defaults *RateLimitLayer `json:"defaults,omitempty"`

	// Overrides don't give way to them.
	// +optional
	Overrides *RateLimitLayer `json:"overrides,omitempty"`

	RateLimits `json:",inline"`
}

// RateLimitLayer is limits with what becomes of them where other policies say something.
//
// +kubebuilder:validation:XValidation:rule="has(self.limits)",message="there are no limits; to limit nothing, write limits: {all: {unlimited: {}}}"
type RateLimitLayer struct {
	// Strategy is atomic, which is the default, or merge: limits of different names are in
	// force together then.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	RateLimits `json:",inline"`
}

// RateLimits are named limits. Policies are merged by these names.
type RateLimits struct {
	// Limits are all in force: a request that is over one of them is answered with 429.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'))",message="names are of at most 63 lower case letters, digits and hyphens"
	Limits map[string]RateLimit `json:"limits,omitzero"`
}

// RateLimit is how many requests are let through, and which of them are counted together.
//
// +kubebuilder:validation:XValidation:rule="has(self.scope) ? self.scope == 'Global' || !(has(self.cost) || has(self.onFailure) || has(self.shadow)) : has(self.cost) || !(has(self.onFailure) || has(self.shadow))",message="cost, onFailure and shadow need scope: Global"
// +kubebuilder:validation:XValidation:rule="has(self.unlimited) ? !(has(self.rates) || has(self.counters) || has(self.when) || has(self.scope) || has(self.cost) || has(self.onFailure) || has(self.shadow)) : has(self.rates)",message="a limit has rates, or it is unlimited: {} with nothing beside it"
type RateLimit struct {
	// Rates must all be kept to. No two have one window. They are needed, but for unlimited.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Rates []Rate `json:"rates,omitzero"`

	// Counters say which requests are counted together: those in which all of these are the
	// same. Without any, all are. Each is one of client.address, auth.client,
	// auth.claims.NAME, request.headers['NAME'], request.host, request.method and request.path.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=300
	Counters []string `json:"counters,omitzero"`

	// When is an expression in CEL that says which requests count. The others are none of the
	// limit's business. All count without, and so do those for which the expression fails, such
	// as by a header or a claim that isn't there. It is written as when of an AuthPolicy is.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	When string `json:"when,omitempty"`

	// Addresses are those of the clients whose requests count, as the proxy sees them: all without. Where when is said too,
	// both must hold.
	//
	// +optional
	Addresses *LimitAddresses `json:"addresses,omitempty"`

	// Scope is who counts together: Local, by which each proxy counts by itself, or Global, by
	// which all proxies of a Gateway do. The default is Local, and Global with a cost.
	//
	// +optional
	Scope RateLimitScope `json:"scope,omitempty"`

	// Stage is when requests are counted: AfterAuthentication, the default, by which those that an
	// AuthPolicy refuses don't count, or BeforeAuthentication, by which they do. Who a client is isn't
	// known before. With cost.statuses the default is BeforeAuthentication.
	//
	// +optional
	Stage RateLimitStage `json:"stage,omitempty"`

	// Cost is what a request counts for. Without it each is one. It needs the scope Global.
	//
	// +optional
	Cost *RateLimitCost `json:"cost,omitempty"`

	// OnFailure is what becomes of requests while what counts for all proxies can't be
	// reached: Allow, the default, or Deny, by which they are answered with 503. Limits of one request
	// are judged together, so that Deny of any of them is for all. It needs the scope Global.
	//
	// +optional
	OnFailure RateLimitFailure `json:"onFailure,omitempty"`

	// Shadow counts and lets everything through, to see in metrics what the limit would do.
	// It needs the scope Global.
	//
	// +optional
	Shadow bool `json:"shadow,omitempty"`

	// Unlimited limits nothing. It takes the place of what other policies limit, as any limit does:
	// of the one of its name, or of all where they don't merge. Nothing stands beside it.
	//
	// +optional
	Unlimited *Unlimited `json:"unlimited,omitempty"`
}

// LimitAddresses are ranges of IP addresses, such as 192.0.2.0/24 or 2001:db8::/32; an address alone is a range of its own.
//
// +kubebuilder:validation:MinProperties=1
type LimitAddresses struct {
	// In are those whose requests count: all without any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	In []string `json:"in,omitzero"`

	// NotIn are those whose requests don't count, though in may have them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	NotIn []string `json:"notIn,omitzero"`
}

// Unlimited has no fields: {}.
type Unlimited struct{}

// RateLimitScope is who counts together.
//
// +kubebuilder:validation:Enum=Local;Global
type RateLimitScope string

// LocalScope has each proxy count by itself, and GlobalScope all proxies of a Gateway together.
const (
	LocalScope  RateLimitScope = "Local"
	GlobalScope RateLimitScope = "Global"
)

// RateLimitStage is when requests are counted.
//
// +kubebuilder:validation:Enum=BeforeAuthentication;AfterAuthentication
type RateLimitStage string

// BeforeAuthentication counts requests whoever they are from, and AfterAuthentication those that an
// AuthPolicy lets through.
const (
	BeforeAuthentication RateLimitStage = "BeforeAuthentication"
	AfterAuthentication  RateLimitStage = "AfterAuthentication"
)

// RateLimitFailure is what becomes of requests that can't be counted.
//
// +kubebuilder:validation:Enum=Allow;Deny
type RateLimitFailure string

// AllowOnFailure lets requests through that can't be counted, and DenyOnFailure does not.
const (
	AllowOnFailure RateLimitFailure = "Allow"
	DenyOnFailure  RateLimitFailure = "Deny"
)

// RateLimitCost is what a request counts for. It is known when the answer ends: requests are let
// through while anything is left.
//
// +kubebuilder:validation:XValidation:rule="has(self.tokens) != has(self.statuses)",message="a cost is of tokens or of statuses, one of them"
type RateLimitCost struct {
	// Tokens is where answers say how many tokens they have cost: the path to a number of a
	// JSON document, or of the events of a stream, such as usage.total_tokens.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,7}$`
	Tokens string `json:"tokens,omitempty"`

	// Statuses has requests count that are answered with one of these, such as 401 and 403, and no
	// others.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=200
	// +kubebuilder:validation:items:Maximum=599
	Statuses []int32 `json:"statuses,omitempty"`
}

// Rate is how many requests are let through in a time.
type Rate struct {
	// Limit is how many.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Limit int32 `json:"limit,omitzero"`

	// Window is in what time, such as 10s, 1m or 1h: at least a second, and at most 24h, or 744h (31 days)
	// with the scope Global.
	//
	// +required
	Window gwv1.Duration `json:"window,omitzero"`
}
