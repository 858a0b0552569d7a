package figures

import (
	"slices"
	"strings"
)

// errorTypes are Envoy's response flags by what went wrong, in the terms of the attribute error.type of
// GEP-5253 and OpenTelemetry: few, whatever combinations Envoy writes. Of several flags the first here counts.
var errorTypes = []struct {
	is    string
	flags []string
}{
	{"no_route", []string{"NR"}},
	{"denied", []string{"UAEX"}},
	{"rate_limited", []string{"RL", "RLSE"}},
	{"fault", []string{"FI", "DI"}},
	{"overload", []string{"OM", "UO", "DO", "UDO"}},
	{"no_endpoint", []string{"UH", "NC", "LH"}},
	{"timeout", []string{"UT", "DT", "UMSDR", "SI"}},
	{"connection", []string{"UF", "DF"}},
	{"reset", []string{"UC", "UR", "UPE", "LR"}},
	{"client", []string{"DC", "DR", "DPE", "IH"}},
	{"retries", []string{"URX"}}, // all had answers
}

// errorType returns what went wrong, by what Envoy writes for %RESPONSE_FLAGS%; empty for nothing.
func errorType(flags string) string {
	if flags == "" || flags == "-" {
		return ""
	}
	for _, t := range errorTypes {
		for flag := range strings.SplitSeq(flags, ",") {
			if slices.Contains(t.flags, flag) {
				return t.is
			}
		}
	}
	return Other
}
