package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// jsonObject is a message of Envoy's configuration, as JSON.
type jsonObject = map[string]any

// mergeBootstrap adds an operator's additions to our bootstrap.
func mergeBootstrap(ours, additions []byte) ([]byte, error) {
	var base, add jsonObject
	if err := json.Unmarshal(ours, &base); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(additions, &add); err != nil {
		return nil, fmt.Errorf("the additions are no object of YAML or JSON: %w", err)
	}
	add, err := likeOurs(add, base)
	if err == nil {
		err = checkAdditions(add)
	}
	if err != nil {
		return nil, fmt.Errorf("the additions: %w", err)
	}
	// Envoy takes one or the other, and whoever wants a flush has a sink for it.
	if add["stats_flush_interval"] != nil || add["statsFlushInterval"] != nil {
		delete(base, "stats_flush_on_admin")
		delete(base, "stats_eviction_interval") // would have to be a multiple of it
	}
	theirMonitors(base, add)
	raw, err := json.MarshalIndent(merge(base, add), "", "  ")
	return append(raw, '\n'), err
}

// merge returns the objects' fields together: objects are merged, lists appended,
// anything else is replaced, and null removes.
func merge(base, add jsonObject) jsonObject {
	for key, value := range add {
		switch value := value.(type) {
		case nil:
			delete(base, key)
			continue
		case jsonObject:
			if old, ok := base[key].(jsonObject); ok {
				base[key] = merge(old, value)
				continue
			}
		case []any:
			if old, ok := base[key].([]any); ok {
				base[key] = append(old, value...)
				continue
			}
		}
		base[key] = value
	}
	return base
}

// ownFields are those by which a proxy finds its control plane, and we the proxy.
var ownFields = []string{
	"admin", "dynamic_resources",
	"config_sources", "default_config_source", "xds_delegate_extension", "xds_config_tracker_extension",
}

// checkAdditions refuses what would disconnect the proxy from its control plane.
func checkAdditions(add jsonObject) error {
	for _, name := range ownFields {
		if _, ok := add[name]; ok {
			return fmt.Errorf("the field %s is Gatehouse's", name)
		}
	}
	node, err := child[jsonObject](add, "node")
	if err != nil {
		return err
	}
	for _, name := range []string{"id", "cluster"} {
		if _, ok := node[name]; ok {
			return fmt.Errorf("the field node.%s is Gatehouse's", name)
		}
	}
	static, err := child[jsonObject](add, "static_resources")
	if err != nil {
		return err
	}
	clusters, err := child[[]any](static, "clusters")
	if err != nil {
		return fmt.Errorf("static_resources: %w", err)
	}
	for i, c := range clusters {
		c, ok := c.(jsonObject)
		if !ok {
			return fmt.Errorf("static_resources.clusters[%d] is no object", i)
		}
		if c["name"] == xdsCluster || c["name"] == LimitsCluster {
			return fmt.Errorf("static_resources.clusters[%d]: the name %s is that of Gatehouse's own", i, c["name"])
		}
	}
	return nil
}

// child returns a field that, where it is there, must be of that type.
func child[T any](parent jsonObject, name string) (T, error) {
	var none T
	value, there := parent[name]
	if !there {
		return none, nil
	}
	typed, ok := value.(T)
	if !ok {
		return none, errors.New("the field " + name + " has another type")
	}
	return typed, nil
}

// likeOurs gives the fields that ours has too the names that ours have, as Envoy
// takes camelCase as well. Deeper ones are left alone, since keys may be data there.
func likeOurs(add, ours jsonObject) (jsonObject, error) {
	out := make(jsonObject, len(add))
	for key, value := range add {
		if name := snake(key); ours[name] != nil || slices.Contains(ownFields, name) {
			key = name
		}
		if inner, ok := value.(jsonObject); ok {
			if mine, ok := ours[key].(jsonObject); ok {
				var err error
				if value, err = likeOurs(inner, mine); err != nil {
					return nil, fmt.Errorf("%s: %w", key, err)
				}
			}
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("the field %s is there twice, under both its names", key)
		}
		out[key] = value
	}
	return out, nil
}

func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
