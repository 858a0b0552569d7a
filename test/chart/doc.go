// Package chart tests charts/gatehouse with Helm itself: that it follows its values,
// that values with mistakes are refused, that the configuration it makes is one that
// the controller takes, and that the manifests in config are what it renders. In a
// cluster it is installed, upgraded and uninstalled too: the script run brings one up. The
// script upgrade brings up one with an older version.
//
// Helm is a tool with a module of its own, tools/helm.
package chart
