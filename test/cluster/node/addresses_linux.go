package main

// The addresses of a cluster are from the range reserved for benchmarks (RFC
// 2544), which no network of this machine should have. Each cluster has them
// all: networks are namespaces.
const (
	podRange     = "198.18.0.0/20"
	serviceRange = "198.18.128.0/20"
	balancers    = "198.19.0.0/24" // of LoadBalancer Services
	nodeAddress  = "198.18.255.1"
	apiService   = "198.18.128.1"  // the first of serviceRange, by Kubernetes' own rule
	dnsService   = "198.18.128.10" // dns.yaml has it too
	fence        = "198.19.255.1"  // see network
)
