package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// redisLacks says what the Redis of a Gateway needs and nobody has made, for which its pods wait;
// empty for nothing.
func (p *Pipeline) redisLacks(c *flow.Ctx, gateway object.Name) string {
	gw, ok := flow.Get(c, p.Graph.Fleets, gateway)
	if !ok || gw.Parameters == nil || gw.Parameters.Limits == nil || gw.Parameters.Limits.Redis == nil {
		return ""
	}
	for _, file := range infra.RedisFiles(gw.Parameters.Limits.Redis) {
		at := object.Name{Namespace: p.Options.Places.Of(gateway), Name: file.Name}
		if !file.Optional && !p.hasEntry(c, file.Kind, at, file.Entry) {
			return condition.RedisLacks(file.Kind, at.String(), file.Entry)
		}
	}
	return ""
}

// hasEntry reports whether there is a Secret or a ConfigMap with an entry.
func (p *Pipeline) hasEntry(c *flow.Ctx, of string, at object.Name, entry string) (has bool) {
	if of == kind.Secret.Name() {
		if secret, ok := flow.Get(c, p.Inputs.Secrets, at); ok {
			_, has = secret.Data[entry]
		}
		return has
	}
	if configMap, ok := flow.Get(c, p.Inputs.ConfigMaps, at); ok {
		_, has = configMap.Data[entry]
	}
	return has
}
