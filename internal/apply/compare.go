package apply

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// holds reports whether a live object has every field of a wanted one. What it has
// beside those is its own: defaults, and what others manage.
func holds(live, want map[string]any) bool {
	for name, w := range want {
		if name == "apiVersion" || name == "kind" {
			continue // which it was found by
		}
		if !hasValue(name, live[name], w) {
			return false
		}
	}
	return !hasFurtherItems(live, want, "spec", "ports")
}

// hasFurtherItems reports whether a list has items that it should not have.
func hasFurtherItems(live, want map[string]any, path ...string) bool {
	has, _, _ := unstructured.NestedFieldNoCopy(live, path...)
	should, _, _ := unstructured.NestedFieldNoCopy(want, path...)
	l, _ := has.([]any)
	w, _ := should.([]any)
	return len(l) > len(w)
}

// atomicMaps are the fields of maps that have one owner as a whole.
var atomicMaps = map[string]bool{"selector": true, "matchLabels": true, "nodeSelector": true}

func hasValue(field string, live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, _ := live.(map[string]any)
		if atomicMaps[field] && len(live) != len(want) {
			return false
		}
		for name, w := range want {
			if !hasValue(name, live[name], w) {
				return false
			}
		}
		return true
	case []any:
		live, _ := live.([]any)
		return hasItems(live, want)
	default:
		return reflect.DeepEqual(live, want)
	}
}

// hasItems compares lists. The API merges some lists by the keys of their items: these
// may have items of others too. All other lists have one owner as a whole.
func hasItems(live, want []any) bool {
	if len(want) == 0 {
		return len(live) == 0
	}
	fields := keyFields(want[0])
	if fields == nil {
		if len(live) != len(want) {
			return false
		}
		for i := range want {
			if !hasValue("", live[i], want[i]) {
				return false
			}
		}
		return true
	}
	byKey := make(map[string]any, len(live))
	for _, item := range live {
		byKey[keyOf(item, fields)] = item
	}
	for _, item := range want {
		if !hasValue("", byKey[keyOf(item, fields)], item) {
			return false
		}
	}
	return true
}

// mergeKeys are the keys of the lists that the API merges, those first that are
// not also fields of other items.
var mergeKeys = [][]string{
	{"topologyKey", "whenUnsatisfiable"}, // topologySpreadConstraints
	{"containerPort", "protocol"},        // ports of containers
	{"port", "protocol"},                 // ports of Services
	{"mountPath"},                        // volumeMounts
	{"uid"},                              // ownerReferences
	{"name"},                             // containers, volumes, env, imagePullSecrets
}

// keyFields returns the fields that an item is merged by; nil for none.
func keyFields(item any) []string {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil
	}
next:
	for _, key := range mergeKeys {
		for _, field := range key {
			if _, ok := fields[field]; !ok {
				continue next
			}
		}
		return key
	}
	return nil
}

func keyOf(item any, fields []string) string {
	m, _ := item.(map[string]any)
	var key strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&key, "%v\x00", m[field])
	}
	return key.String()
}
