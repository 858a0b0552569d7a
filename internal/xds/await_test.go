package xds

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A cluster counts as missing until its secrets have come: routes to it are sent after them.
func TestRoutesFollowTheSecretsOfClusters(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), ends("tls", "1"), secret("ca", "1"), table("t", "x:2"), "-cluster/a", "-endpoints/a")
	p.expect("cluster +tls=1", "endpoints +tls=1")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1", "routes +t=[x:2]", "cluster -a")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
	// The next cluster with the same secret waits for nothing.
	h.apply(cluster("other", "1").Awaiting("ca"), ends("other", "1"), table("t", "x:3"))
	p.expect("cluster +other=1", "endpoints +other=1", "routes +t=[x:3]")
	p.quiet()
}

// The wait for a proxy that does not ask is short: its name server may be down.
func TestSecretsThatNobodyAsksFor(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1", "routes +t=[x:2]")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1")
}

// A proxy that has not answered to a cluster yet has had no time to ask for its secrets: on a
// busy machine that is no sign that it never will.
func TestSecretsOfABusyProxy(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1 ?")
	time.Sleep(2 * maxAwait)
	p.quiet()
	p.answer()
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1", "routes +t=[x:2]")
}

// A secret that is removed before the proxy has asked for it delays nothing. The proxy is
// told that there is none, so that the cluster does not wait for ever.
func TestSecretsThatAreGoneAtOnce(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), ends("tls", "1"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1 ?", "endpoints +tls=1")
	h.apply("-cluster/tls", "-endpoints/tls", "-secret/ca", table("t", "x:3"))
	p.expect("routes +t=[x:3]", "cluster -tls")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret -ca")
	p.quiet()
}
