package features

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// Section is a part of the list, about one kind.
type Section struct {
	Title string
	Rows  []Row
}

// Row describes one or several features.
type Row struct {
	// Features are those of the Gateway API that the row is about. A row without
	// any is about something that the API has no feature name for.
	Features []features.FeatureName
	// Title, where it is set, is shown in place of the features' names.
	Title string
	// Experimental marks a row without features that belongs to the experimental
	// channel. Features know their channel.
	Experimental bool
	// Modes are those that support the row; none stands for all.
	Modes []Mode
	// Cases name the proof: files in test/e2e/testdata without their ending, or
	// tests in test/e2e, or in internal/apply and internal/cluster for what is made in
	// clusters. A row without cases is not supported.
	Cases []string
	// Note is Markdown: limits, or why the row is not supported.
	Note string
}

// Supported says whether the row is supported.
func (r Row) Supported() bool { return len(r.Cases) > 0 }

// The channels of the API.
const (
	Standard     = features.FeatureChannel(features.FeatureChannelStandard)
	Experimental = features.FeatureChannel(features.FeatureChannelExperimental)
)

// standardFields are the features of the experimental channel whose fields the
// standard channel has too.
var standardFields = map[features.FeatureName]bool{
	features.SupportHTTPRouteDestinationPortMatching: true, // parentRefs[].port
}

// Mode is who runs the proxies of a Gateway, and where.
type Mode int

// The modes.
const (
	Host      Mode = iota // `gatehouse run`: processes of this host
	Fleets                // `gatehouse controller`: a fleet for each Gateway
	Unmanaged             // the same with infrastructure.type None: pods that somebody else runs
	Pod                   // `gatehouse static-mode`: a process beside it, in the same pod
)

// in says whether the row is supported in a mode.
func (r Row) in(m Mode) bool {
	return r.Supported() && (len(r.Modes) == 0 || slices.Contains(r.Modes, m))
}

// Status returns the features that are supported where the API is of this channel, in a
// mode, in the form of GatewayClass status, sorted by name.
func Status(channel features.FeatureChannel, mode Mode) []gwv1.SupportedFeature {
	var out []gwv1.SupportedFeature
	for _, s := range List {
		for _, r := range s.Rows {
			if !r.in(mode) {
				continue
			}
			for _, name := range r.Features {
				if channel == Standard && !standardFields[name] &&
					features.GetFeature(name).Channel == Experimental {
					continue
				}
				out = append(out, gwv1.SupportedFeature{Name: gwv1.FeatureName(name)})
			}
		}
	}
	slices.SortFunc(out, func(a, b gwv1.SupportedFeature) int {
		return strings.Compare(string(a.Name), string(b.Name))
	})
	return out
}
