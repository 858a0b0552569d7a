// Package apiserver starts a real Kubernetes API server with its etcd for a test:
// on free loopback ports, without kubelet, scheduler or controllers, with the
// Gateway API's CustomResourceDefinitions of a channel and Gatehouse's own.
//
// The binaries etcd and kube-apiserver are taken from $GATEHOUSE_KUBE_BIN, or from
// where test/cluster has them. A test that needs them is skipped where neither has
// them, and fails if the variable is set and they are not there: who names binaries
// wants the tests run.
//
// A test starts with nothing in the server but what it asks for. Each has a server of
// its own, or, in a package whose TestMain says so, one that an earlier test is done
// with and that was made as it was at first (Shared). The processes end with the test
// or with the tests, and with the test process however it ends.
package apiserver
