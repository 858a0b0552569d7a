package v1alpha1

// AuthResponses are what those are told who don't pass. Calls of gRPC get UNAUTHENTICATED and
// PERMISSION_DENIED in any case.
//
// +kubebuilder:validation:MinProperties=1
type AuthResponses struct {
	// Unauthenticated is for requests without valid credentials. The default is 401.
	// +optional
	Unauthenticated *AuthResponse `json:"unauthenticated,omitempty"`

	// Forbidden is for those that don't meet a rule of authorization. The default is 403.
	// +optional
	Forbidden *AuthResponse `json:"forbidden,omitempty"`
}

// AuthResponse is an answer, the same for all.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.redirect) ? !has(self.status) || self.status < 400 : !has(self.status) || self.status >= 400",message="a status of 301, 302, 303, 307 or 308 goes with redirect, and one of 400 to 499 without"
type AuthResponse struct {
	// Status is from 400 to 499. With redirect it is 301, 302, 303, 307 or 308; the default is
	// 302 there.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 400 && self <= 499 || self in [301, 302, 303, 307, 308]",message="400 to 499, or 301, 302, 303, 307 or 308 with redirect"
	Status *int32 `json:"status,omitempty"`

	// Redirect is where clients are sent: a URL, or a path on the same host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern="^(https?://|/)[!-~]*$"
	Redirect *string `json:"redirect,omitempty"`

	// Body is the text of the answer. The default is a short one.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Body *string `json:"body,omitempty"`

	// Headers are those of the answer, by name, such as Content-Type, which is text/plain
	// without.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Za-z0-9!#$%&\\'*+.^_\\x60|~-]{1,256}$'))",message="a header's name has letters, digits and hyphens"
	Headers map[string]ResponseHeader `json:"headers,omitzero"`
}

// ResponseHeader is the value of a header.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern="^[ -~]*$"
type ResponseHeader string
