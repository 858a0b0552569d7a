// Package v1alpha1 has Gatehouse's own kinds.
//
// GatewayParameters say how a Gateway's proxies run and how clients reach them. A
// GatewayClass and a Gateway may each refer to one by parametersRef.
//
// Invariants:
//   - What the schema lets through decodes into these types: an object that can't
//     be decoded would stop the watch of all others.
//   - A field that isn't set differs from one that is empty, 0 or false: the former
//     inherits, the latter doesn't.
//
// How levels are merged is said by tags beside the fields, and done by package
// topology.
//
// +kubebuilder:object:generate=true
// +groupName=gatehouse.dev
package v1alpha1

//go:generate go run gen.go
