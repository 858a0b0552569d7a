package cluster

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/source/members"
)

// membersPatience is how long a start waits for member clusters that don't answer. Meanwhile proxies go on with what they have.
const membersPatience = 30 * time.Second

// openMembers prepares the source that is member clusters, if there is one.
func (c *Cluster) openMembers() error {
	for _, s := range c.config.Sources {
		if len(s.Clusters) == 0 || !c.config.Has(configuration.RoleConfiguration) { // no fleet is made of what they have
			continue
		}
		o := members.Options{Patience: membersPatience, Log: c.opts.Logs.For(configuration.LogSource)}
		for _, of := range s.Clusters {
			m := members.Cluster{
				Name: of.Name, Kubeconfig: of.Kubeconfig, Context: of.Context, Namespaces: of.Namespaces, KeepFor: of.KeepFor.Duration,
			}
			if of.Kubeconfig == "" {
				m.REST = c.opts.REST
				if len(m.Namespaces) == 0 {
					m.Namespaces = c.config.Cluster().Namespaces
				}
			}
			o.Clusters = append(o.Clusters, m)
		}
		var err error
		if c.members, err = members.New(o); err != nil {
			return err
		}
	}
	return nil
}
