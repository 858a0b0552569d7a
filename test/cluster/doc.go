// Package cluster is how tests reach Kubernetes: the one that KUBECONFIG names,
// or the one that `make cluster` brought up on this machine.
//
// That one is real: the Kubernetes binaries, etcd, containerd and CoreDNS, on
// one node, with addresses for Services of type LoadBalancer. It lives in
// namespaces of its own (network, mounts, processes), so nothing in it can
// leave the machine or be seen from it, and a test comes in by Dial and Start:
//
//   - Invariant: whoever has a Cluster need not know which kind it is.
//   - Invariant: nothing here starts or stops a cluster; test/cluster/node does.
//   - Several may run side by side, under names: GATEHOUSE_CLUSTER.
//
// README.md says how it is made and why.
package cluster
