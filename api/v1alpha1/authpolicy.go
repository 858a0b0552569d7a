package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// AuthPolicy says who may pass: which credentials a request must have, and what must hold
// for it besides. Proxies ask nobody for it, except for the services that external rules name. A
// policy that is broken lets nobody pass by the rules that are.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=authpolicies,singular=authpolicy,categories=gateway-api,shortName=ap
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRefs[0].kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.spec.targetSelectors[0].matchLabels`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AuthPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec AuthPolicySpec `json:"spec"`

	// +optional
	Status gwv1.PolicyStatus `json:"status,omitzero"`
}

// AuthPolicyList is a list of AuthPolicies.
//
// +kubebuilder:object:root=true
type AuthPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AuthPolicy `json:"items"`
}

// AuthPolicySpec is what a policy is for, and what it says. Its rules stand in defaults, in
// overrides, or beside the targets, which is the same as defaults with the strategy atomic.
//
// +kubebuilder:validation:XValidation:rule="[has(self.defaults), has(self.overrides), has(self.authentication) || has(self.authorization) || has(self.responses)].filter(x, x).size() == 1",message="rules stand in defaults, in overrides, or beside targetRefs, in one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.responses) || has(self.authentication) || has(self.authorization)",message="responses are for those who don't pass, and without rules all do"
// +kubebuilder:validation:XValidation:rule="has(self.targetRefs) || has(self.targetSelectors)",message="an AuthPolicy needs targetRefs or targetSelectors, which say what it is for"
type AuthPolicySpec struct {
	// TargetRefs are what the policy is for, in its own namespace: Gateways and ListenerSets,
	// or one of their listeners by sectionName, HTTPRoutes and GRPCRoutes, or one of their
	// rules by its name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="an AuthPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitzero"`

	// TargetSelectors are what the policy is for besides, by labels. At least one of targetRefs and
	// targetSelectors is needed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="an AuthPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetSelectors []TargetSelector `json:"targetSelectors,omitzero"`

	// Defaults give way to policies with more specific targets. Without any rules the
	// policy is Invalid, and nobody passes.
	// +optional
	Defaults *AuthLayer `json:"defaults,omitempty"`

	// Overrides don't give way to them.
	// +optional
	Overrides *AuthLayer `json:"overrides,omitempty"`

	AuthRules `json:",inline"`
}

// AuthLayer is rules with what becomes of them where other policies say something.
//
// +kubebuilder:validation:XValidation:rule="has(self.authentication) || has(self.authorization)",message="there are no rules; write authentication or authorization: to let everybody pass, authentication: {all: {anonymous: {}}}"
type AuthLayer struct {
	// Strategy is atomic, which is the default, or merge: rules of different names are in
	// force together then.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	AuthRules `json:",inline"`
}

// AuthRules are named rules. Policies are merged by these names.
type AuthRules struct {
	// Authentication says which credentials a request needs: those of one of these rules,
	// whichever. Requests without are answered with 401. Without rules here none are needed.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'))",message="names are of at most 63 lower case letters, digits and hyphens"
	// +kubebuilder:validation:XValidation:rule="self.filter(name, has(self[name].oidc)).size() <= 1",message="people can log in at one provider: there can be one rule with oidc"
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, has(self[name].oidc)) || !self.exists(name, has(self[name].anonymous))",message="nobody would be led to log in: oidc and anonymous can't stand together"
	Authentication map[string]Authentication `json:"authentication,omitzero"`

	// Authorization says what must hold besides: all of these rules. Requests of which one
	// doesn't hold are answered with 403.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'))",message="names are of at most 63 lower case letters, digits and hyphens"
	Authorization map[string]Authorization `json:"authorization,omitzero"`

	// Responses are what those are told who don't pass. Each is merged like a rule of its name.
	// They go with rules.
	// +optional
	Responses *AuthResponses `json:"responses,omitempty"`
}

// Authentication is a kind of credentials.
//
// +kubebuilder:validation:XValidation:rule="[has(self.jwt), has(self.oidc), has(self.apiKey), has(self.basic), has(self.clientCertificate), has(self.anonymous)].filter(x, x).size() == 1",message="exactly one of jwt, oidc, apiKey, basic, clientCertificate and anonymous is needed"
type Authentication struct {
	// JWT accepts JSON Web Tokens of an issuer (RFC 7519).
	// +optional
	JWT *JWT `json:"jwt,omitempty"`

	// OIDC has people log in at an OpenID Provider. A policy has one such rule at most.
	// +optional
	OIDC *OIDC `json:"oidc,omitempty"`

	// APIKey accepts keys that a Secret has.
	// +optional
	APIKey *APIKey `json:"apiKey,omitempty"`

	// Basic accepts names and passwords by HTTP's Basic scheme (RFC 7617).
	// +optional
	Basic *Basic `json:"basic,omitempty"`

	// ClientCertificate accepts certificates of clients that the listener has verified, as
	// spec.tls.frontend of the Gateway says. On a listener that verifies none nobody passes by it.
	// +optional
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`

	// Anonymous accepts requests without credentials. Those that have some are told apart by
	// the other rules.
	// +optional
	Anonymous *Anonymous `json:"anonymous,omitempty"`
}

// Anonymous has no fields: {}.
type Anonymous struct{}

// JWT says which tokens are accepted.
//
// +kubebuilder:validation:XValidation:rule="has(self.jwks) || self.issuer.matches('^https?://.')",message="without jwks the issuer is asked where its keys are, and has to be an https URL; set jwks"
type JWT struct {
	// Issuer is the iss claim of the tokens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer,omitzero"`

	// Audiences are those of which a token's aud claim must have one. Without any it is not
	// looked at.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	Audiences []string `json:"audiences,omitzero"`

	// JWKS is where the public keys of the issuer are (RFC 7517). Without it the issuer is
	// asked: its configuration (OpenID Connect Discovery 1.0), at
	// /.well-known/openid-configuration below it, says where they are, and the issuer is
	// an https URL then.
	// +optional
	JWKS *JWKS `json:"jwks,omitempty"`

	// From is where in a request a token is. The default is the header Authorization, after
	// "Bearer ".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	From []CredentialSource `json:"from,omitzero"`

	// ClaimsToHeaders tell the backend what claims say. What clients send under the names of
	// these headers is removed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ClaimsToHeaders []ClaimToHeader `json:"claimsToHeaders,omitzero"`

	// HideCredentials keeps a token that counts from what comes behind: services that are asked, limits and
	// backends. The place where it is is emptied.
	// +optional
	HideCredentials bool `json:"hideCredentials,omitempty"`
}

// JWKS is a JSON Web Key Set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.uri), has(self.inline), has(self.secretRef), has(self.configMapRef)].filter(x, x).size() == 1",message="exactly one of uri, inline, secretRef and configMapRef is needed; without jwks the issuer is asked where its keys are"
type JWKS struct {
	// URI is an https URL from which Gatehouse fetches the set, and from time to time anew.
	// In a cluster it leads to public hosts and to those that the GatewayClass allows.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URI *string `json:"uri,omitempty"`

	// Inline is the JSON itself.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Inline *string `json:"inline,omitempty"`

	// SecretRef is a Secret in the policy's namespace.
	// +optional
	SecretRef *KeyRef `json:"secretRef,omitempty"`

	// ConfigMapRef is a ConfigMap in the policy's namespace.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`
}

// KeyRef is an entry of a Secret or a ConfigMap.
type KeyRef struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitzero"`

	// Key is the name of the entry. Each use has a default of its own: jwks.json for public
	// keys, .htpasswd for passwords, client-secret for that of a client of a provider.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// SecretRef names a Secret. The field that has one says in which namespace.
type SecretRef struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitzero"`
}

// CredentialSource is where in a request a credential is.
//
// +kubebuilder:validation:XValidation:rule="[has(self.header), has(self.query), has(self.cookie)].filter(x, x).size() == 1",message="exactly one of header, query and cookie is needed"
// +kubebuilder:validation:XValidation:rule="!has(self.prefix) || has(self.header)",message="only a header has a prefix"
type CredentialSource struct {
	// Header is the name of a header.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	Header *string `json:"header,omitempty"`

	// Prefix stands in the header before the credential, such as "Bearer ". Values without it
	// are no credentials.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Prefix *string `json:"prefix,omitempty"`

	// Query is the name of a query parameter. Mind that URLs are often logged.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Query *string `json:"query,omitempty"`

	// Cookie is the name of a cookie.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Cookie *string `json:"cookie,omitempty"`
}

// ClaimToHeader has a header say what a claim says.
type ClaimToHeader struct {
	// Claim is the name of a claim, or the path to one inside of others, with dots between
	// the names: realm_access.roles. A name with a slash is one name, whatever dots it has.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Claim string `json:"claim,omitzero"`

	// Header is the name of the header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	Header string `json:"header,omitzero"`
}

// APIKey says which keys are accepted.
type APIKey struct {
	// SecretRef is the Secret with the keys: the name of each entry is that of a client, its
	// value the client's key.
	// +required
	SecretRef SecretRef `json:"secretRef,omitzero"`

	// From is where in a request a key is. The default is the header X-API-Key.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	From []CredentialSource `json:"from,omitzero"`

	// IdentityHeader tells the backend the name of the client. What clients send under the
	// name of this header is removed.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]*$"
	IdentityHeader string `json:"identityHeader,omitempty"`

	// HideCredentials keeps a key that counts from what comes behind: services that are asked, limits and
	// backends. The place where it is is emptied.
	// +optional
	HideCredentials bool `json:"hideCredentials,omitempty"`
}

// Basic says which names and passwords are accepted.
type Basic struct {
	// SecretRef is a Secret with lines as `htpasswd -s` writes them: name:{SHA}hash. Other
	// hashes are refused. The default of its key is .htpasswd.
	// +required
	SecretRef KeyRef `json:"secretRef,omitzero"`

	// Realm is what browsers show to those whom they ask for a password. The default is the
	// name of the rule.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^[ !#-\\[\\]-~]*$"
	Realm string `json:"realm,omitempty"`

	// IdentityHeader tells the backend the name of the user. What clients send under the
	// name of this header is removed.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]*$"
	IdentityHeader string `json:"identityHeader,omitempty"`

	// HideCredentials keeps a password that counts from what comes behind: services that are asked, limits and
	// backends. The header Authorization is removed.
	// +optional
	HideCredentials bool `json:"hideCredentials,omitempty"`
}

// ClientCertificate says whose certificates are accepted.
type ClientCertificate struct {
	// SubjectAltNames are names of which a certificate must have one. Without any, all
	// certificates are accepted that the listener has verified.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	SubjectAltNames []CertificateName `json:"subjectAltNames,omitzero"`

	// IdentityHeader tells the backend the name by which the certificate was accepted; without
	// subjectAltNames the first URI, or else the first host, or else the subject. What
	// clients send under the name of this header is removed.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]*$"
	IdentityHeader string `json:"identityHeader,omitempty"`
}

// CertificateName is a name that a certificate is for (RFC 5280, section 4.2.1.6).
//
// +kubebuilder:validation:XValidation:rule="[has(self.dns), has(self.uri)].filter(x, x).size() == 1",message="exactly one of dns and uri is needed"
type CertificateName struct {
	// DNS is the name of a host. *.example.com is for all names with one label more.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(\*\.)?[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$`
	DNS *string `json:"dns,omitempty"`

	// URI is such as spiffe://example.com/shop.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URI *string `json:"uri,omitempty"`
}
