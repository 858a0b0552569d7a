// Command cluster measures the shapes of the public Gateway API benchmark
// (github.com/howardjohn/gateway-api-bench) in Kubernetes, for any implementation
// whose Gateways it is given by name.
//
//	make bench-cluster
//
// That is test/bench/cluster/run, which brings up a cluster and installs Gatehouse
// in it. Nothing here knows Gatehouse but the defaults of the flags.
//
// Invariants:
//   - A figure is what a client on loopback or the API server sees; only CPU and
//     memory are what the controller's own metrics say.
//   - Everything that is made is in two namespaces, which go in the end, signals
//     included. All waiting is bounded.
//   - Samples are kept with the figures, and plots and the page of the documentation
//     are made of them alone: -plot makes them again.
package main
