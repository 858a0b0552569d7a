package pipeline

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// redisLacks says what the Redis of a Gateway needs and nobody has made, for which its pods wait;
// empty for nothing.
func (p *Pipeline) redisLacks(c *flow.Ctx, gateway object.Name) string {
	gw, ok := flow.Get(c, p.Graph.Gateways, gateway)
	if !ok || gw.Parameters == nil || gw.Parameters.Limits == nil || gw.Parameters.Limits.Redis == nil {
		return ""
	}
	lacks := func(kind, name, entry string) string {
		at := object.Name{Namespace: gateway.Namespace, Name: name}
		has := false
		if kind == "Secret" {
			if secret, ok := flow.Get(c, p.Inputs.Secrets, at); ok {
				_, has = secret.Data[entry]
			}
		} else if configMap, ok := flow.Get(c, p.Inputs.ConfigMaps, at); ok {
			_, has = configMap.Data[entry]
		}
		if has {
			return ""
		}
		return condition.RedisLacks(kind, at.String(), entry)
	}
	redis := gw.Parameters.Limits.Redis
	if redis.SecretRef != nil {
		if why := lacks("Secret", redis.SecretRef.Name, "password"); why != "" {
			return why
		}
	}
	if redis.TLS != nil && redis.TLS.CACertificateRef != nil {
		return lacks(cmp.Or(redis.TLS.CACertificateRef.Kind, "ConfigMap"), redis.TLS.CACertificateRef.Name, "ca.crt")
	}
	return ""
}
