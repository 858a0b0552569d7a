// Package extensionv1alpha1 is the protocol of extension servers, for those who write one in Go:
// RegisterExtensionServer and what it takes. Others need extension.proto alone, which is beside it.
package extensionv1alpha1

//go:generate go run -C ../../../tools/protobuf . ../.. api/extension/v1alpha1/extension.proto
