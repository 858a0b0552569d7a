package v1alpha1

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// OIDC has people log in at an OpenID Provider (OpenID Connect Core 1.0, authorization code
// flow with PKCE). Browsers without a session are led there, and back to where they wanted to
// go. The session is in encrypted cookies of the host, so no proxy keeps anything, and it is
// renewed by refresh tokens where the provider gives some. Clients that no person sits at are
// answered with 401: calls of gRPC, requests of scripts, and those with the header Authorization.
//
// +kubebuilder:validation:XValidation:rule="!has(self.redirectURL) || !has(self.callbackPath)",message="redirectURL has the callback's path: leave callbackPath out"
type OIDC struct {
	// Issuer is the https URL of the provider. Its configuration, at
	// /.well-known/openid-configuration below it (OpenID Connect Discovery 1.0), says where
	// people log in, where proxies get tokens, and which keys sign them.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://.`
	Issuer string `json:"issuer,omitzero"`

	// ClientID is what the provider knows the application by.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ClientID string `json:"clientID,omitzero"`

	// ClientSecretRef is a Secret in the policy's namespace with the secret that goes with
	// clientID. The default of its key is client-secret. The key of the sessions is made of it:
	// with a new secret everybody logs in anew.
	//
	// +required
	ClientSecretRef KeyRef `json:"clientSecretRef,omitzero"`

	// Scopes are asked for beside openid, such as profile, or offline_access for refresh tokens.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^[!#-\\[\\]-~]+$"
	Scopes []string `json:"scopes,omitzero"`

	// CallbackPath is the path to which the provider sends people back, on each host that the
	// policy guards. Register https://HOST/oauth2/callback, or what it is here, with the provider.
	// The proxy answers it itself. Two policies on one host need two of them. The default is
	// /oauth2/callback.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9_~/-][A-Za-z0-9._~/-]*$`
	CallbackPath string `json:"callbackPath,omitempty"`

	// LogoutPath is the path that ends a session, here and, where it says how, at the provider.
	// The default is /oauth2/logout.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9_~/-][A-Za-z0-9._~/-]*$`
	LogoutPath string `json:"logoutPath,omitempty"`

	// RedirectURL is the one URL to which the provider sends people back, whatever host they come from, for
	// providers that know one alone. The policy guards its host, and its path is the callback's on all hosts. People
	// who come from other hosts need a cookieDomain that has all of them. The default is callbackPath on the host
	// that they come from.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:_\[\]-]+/[A-Za-z0-9_~/-][A-Za-z0-9._~/-]*$`
	RedirectURL string `json:"redirectURL,omitempty"`

	// CookieDomain has people log in once for all hosts of a domain, such as example.com: browsers send the
	// session to that host and to all below it, whoever serves them. On other hosts nobody can log in. The default is
	// one session for each host.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	CookieDomain string `json:"cookieDomain,omitempty"`

	// PostLogoutRedirect is where people get to who have logged out at the provider: a URL, or a path on the host that
	// they come from. Register it with the provider. The default is /. Without an end_session_endpoint of the
	// provider people always get to /.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(https?://[A-Za-z0-9]|/)[!#$&-~]*$`
	PostLogoutRedirect string `json:"postLogoutRedirect,omitempty"`

	// ForwardAccessToken gives the backend the access token, in the header Authorization. By
	// default it is not kept at all.
	//
	// +optional
	ForwardAccessToken bool `json:"forwardAccessToken,omitempty"`

	// ClaimsToHeaders tell the backend what claims of the ID token say. What clients send under
	// the names of these headers is removed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ClaimsToHeaders []ClaimToHeader `json:"claimsToHeaders,omitzero"`

	// BackendRef is where proxies reach the provider's token endpoint: a port of a Service, in
	// the policy's namespace or in one with a ReferenceGrant, or an XBackend in the policy's
	// namespace. Without it they go to the endpoint's own host, which in a cluster has to be
	// among backends.externalNames of the Gateway's parameters.
	//
	// +optional
	BackendRef *gwv1.BackendObjectReference `json:"backendRef,omitempty"`
}
