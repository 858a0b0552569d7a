package cluster

import (
	"context"
	"net/url"
	"os"

	"k8s.io/client-go/rest"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/keyset/fetch"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
)

// fetcher makes what fetches the key sets that policies want; nil for the loop where nobody is served. Each replica does, for
// the proxies that are connected to it.
func (c *Cluster) fetcher() loop.KeySets {
	c.keySets = fetch.New(fetch.Options{
		Log: c.log, Refused: apiServers(c.opts.REST),
		Answer: func(ctx context.Context, k keyset.Key, a keyset.Answer) { c.loop.Learn(ctx, k, a) },
	})
	if !c.config.Has(configuration.RoleConfiguration) {
		return nil
	}
	return c.keySets
}

// apiServers are the hosts of the API server, by the names and addresses that this process
// knows. Nobody's policy leads there.
func apiServers(config *rest.Config) (hosts []string) {
	if u, err := url.Parse(config.Host); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}
