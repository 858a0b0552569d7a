package schema

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// What is wrong in a match is replaced by something that takes all that it can have meant,
// and that goes where the match would have gone in the order of precedence, or before it:
// expressions go before prefixes, and a match with more conditions before one with less.

// longest is nearly the longest expression that the schema takes: what can't be read goes
// before what can.
const longest = 1020

// mostRead is how much of a value is used for an expression, which is longer.
const mostRead = 256

// unsaid is the path that the schema gives a match without one.
var unsaid = map[string]any{"type": "PathPrefix", "value": "/"}

// methods are all that the match of an HTTPRoute can name.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// widen replaces what is wrong at a path of a draft, which is the place of a field that the
// kind doesn't have where missing is true. It reports false where that is not in a match.
func (of standIn) widen(draft map[string]any, path []string, missing bool) bool {
	if of.all == nil || len(path) == 0 || path[0] != "rules" {
		return false
	}
	rules, i, ok := itemAt(draft["rules"], path, 1)
	if !ok {
		draft["rules"] = []any{of.rule(nil)}
		return true
	}
	rule, ok := rules[i].(map[string]any)
	if len(path) == 3 && missing {
		if ok && of.takesAll(rule) && mayBeMatches(path[2]) {
			rules[i] = of.rule(nil)
		}
		return true
	}
	if len(path) > 2 && path[2] != "matches" {
		return false
	}
	matches, j, ok := itemAt(rule["matches"], path, 3)
	if !ok {
		rules[i] = of.rule(nil)
		return true
	}
	match, ok := matches[j].(map[string]any)
	if !ok || len(path) == 4 {
		match = nil
	} else {
		more := of.widenMatch(match, path[4:], missing)
		rule["matches"] = append(matches, more...)
	}
	if len(match) == 0 {
		matches[j] = runtime.DeepCopyJSON(of.all)
	}
	return true
}

// itemAt returns the list and the index that a path has at a step; false if it ends before,
// or there is no such item.
func itemAt(value any, path []string, step int) (list []any, i int, ok bool) {
	list, ok = value.([]any)
	if !ok || len(path) <= step {
		return nil, 0, false
	}
	i, err := strconv.Atoi(path[step])
	return list, i, err == nil && i >= 0 && i < len(list)
}

// takesAll reports whether a rule says nothing of what it takes.
func (of standIn) takesAll(rule map[string]any) bool {
	matches, _ := rule["matches"].([]any)
	return len(matches) == 0 || len(matches) == 1 && reflect.DeepEqual(matches[0], map[string]any{"path": unsaid})
}

// mayTakeLess reports whether rules that say nothing of what they take may have said it in a
// field at a path elsewhere, which the kind doesn't have.
func (of standIn) mayTakeLess(draft map[string]any, path string) bool {
	way := steps(path)
	if of.all == nil || len(way) == 0 || len(way) > 1 && (way[0] != "spec" || way[1] == "rules") || !mayBeMatches(way[len(way)-1]) {
		return false
	}
	rules, _ := draft["rules"].([]any)
	for _, rule := range rules {
		if fields, ok := rule.(map[string]any); !ok || !of.takesAll(fields) {
			return false
		}
	}
	return true
}

// mayBeMatches reports whether a field that rules don't have may be a misspelt list of
// matches, or a part of one: it doesn't begin like another field.
func mayBeMatches(name string) bool {
	return !slices.ContainsFunc([]string{"na", "fi", "ba", "ti", "re", "se"}, func(begin string) bool {
		return strings.HasPrefix(strings.ToLower(name), begin)
	})
}

// widenMatch replaces the condition of a match in which something is wrong, and empties a match
// of which nothing can be read. It returns matches that the rule needs besides.
func (of standIn) widenMatch(match map[string]any, path []string, missing bool) (more []any) {
	switch _, ok := match[path[0]]; {
	case path[0] == "path":
		return widenPath(match, missing)
	case path[0] == "method" && of.calls:
		return widenCall(match, missing)
	case path[0] == "method":
		whatever := runtime.DeepCopyJSON(match) // it may be one that no match can name, such as PROPFIND
		delete(whatever, "method")
		addCondition(whatever) // lest the path's own rule goes first
		match["method"] = methods[0]
		for _, method := range methods[1:] {
			other := runtime.DeepCopyJSON(match)
			other["method"] = method
			more = append(more, other)
		}
		return append(more, whatever)
	case !ok && match["method"] == nil && (match["path"] == nil || reflect.DeepEqual(match["path"], unsaid)):
		clear(match) // the field that is missing may have been the path
	case !ok:
		addCondition(match)
	default:
		widenValue(match, path)
	}
	return more
}

// widenPath replaces the path of a match.
func widenPath(match map[string]any, missing bool) (more []any) {
	path, _ := match["path"].(map[string]any)
	value, ok := path["value"].(string)
	if !ok || missing {
		clear(match)
		return nil
	}
	begin := value
	switch path["type"] {
	case "PathPrefix", "Exact":
	case "RegularExpression":
		begin = re2.Literal(value)
	default:
		// It may be another word for Exact, which goes before all else, or for an expression,
		// where what ends a path is an operator.
		exact := maps.Clone(match)
		exact["path"] = map[string]any{"type": "Exact", "value": value}
		more = []any{runtime.DeepCopyJSON(exact)}
		begin = re2.Literal(value)
	}
	for _, end := range [...]string{"//", "/./", "/..", "%", "?", "#"} { // Envoy may see another path from there
		begin, _, _ = strings.Cut(begin, end)
	}
	if !strings.HasPrefix(value, "/") {
		begin = ""
	}
	match["path"] = map[string]any{"type": "RegularExpression", "value": expression(begin, value)}
	return more
}

// expression matches what begins with a text that all which a value may mean begins with, and
// goes where the value would. Of an expression, the text has to be read from all of it: an
// alternative may be anywhere.
func expression(begin, value string) string {
	return re2.BeginningWith(re2.Literal(begin[:min(len(begin), mostRead)]), min(len(value), longest))
}

// widenCall replaces the service and the method of a match of gRPC.
func widenCall(match map[string]any, missing bool) (more []any) {
	call, _ := match["method"].(map[string]any)
	service, hasService := call["service"].(string)
	method, hasMethod := call["method"].(string)
	switch {
	case !hasService && !hasMethod || missing || call["service"] != nil && !hasService:
		clear(match)
		return nil
	case call["type"] == "Exact" && isName(service) && call["method"] != nil:
		match["method"] = map[string]any{"type": "Exact", "service": service}
		addCondition(match) // lest the service's own rule goes first
		return nil
	case call["type"] != "Exact" && call["type"] != "RegularExpression":
		exact := maps.Clone(match)
		exact["method"] = runtime.DeepCopyJSON(call)
		exact["method"].(map[string]any)["type"] = "Exact"
		more = []any{runtime.DeepCopyJSON(exact)}
	}
	wide := map[string]any{"type": "RegularExpression"}
	if hasService {
		wide["service"] = expression(re2.Literal(service), service)
	}
	if call["method"] != nil {
		wide["method"] = expression(re2.Literal(method), method)
	}
	match["method"] = wide
	return more
}

// isName reports whether a text has the letters of a service.
func isName(text string) bool {
	return text != "" && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

// widenValue replaces the condition of a header or a query parameter: requests are refused that
// have it at all.
func widenValue(match map[string]any, path []string) {
	list, i, ok := itemAt(match[path[0]], path, 1)
	if !ok {
		clear(match)
		return
	}
	name := nameIn(list[i])
	named := func(other any) bool {
		return strings.EqualFold(nameIn(other), name)
	}
	switch {
	case name == "" || strings.Trim(strings.ToLower(name), token) != "" || len(path) > 2 && path[2] == "name":
		list[i] = taken{}
		addCondition(match)
	case slices.ContainsFunc(list[:i], named): // the first of a name counts
		list[i] = taken{}
	default:
		list[i] = map[string]any{"name": name, "type": "RegularExpression", "value": re2.Anything}
	}
}

// token are the characters of a header's name, in lower case.
const token = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"

// addCondition gives a match a condition that every request meets, in place of one that
// can't be read.
func addCondition(match map[string]any) {
	list, _ := match["headers"].([]any)
	if !slices.ContainsFunc(list, func(header any) bool { return strings.EqualFold(nameIn(header), "host") }) {
		match["headers"] = append(list, map[string]any{"name": "host", "type": "RegularExpression", "value": re2.Anything})
	}
}

// nameIn returns the name that a mapping has.
func nameIn(value any) string {
	fields, _ := value.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
