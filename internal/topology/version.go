package topology

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// Version is what the cluster's definitions of the Gateway API mean for our classes.
type Version struct {
	// Supported is the condition of that type.
	Supported metav1.Condition
	// Refused is the Accepted condition of all classes where the objects may mean
	// something else than what we know; zero where they can be used.
	Refused metav1.Condition
}

// Usable reports whether objects mean what we know.
func (v Version) Usable() bool { return v.Refused.Type == "" }

// VersionOf checks definitions by what they say of their version. Those of other
// minor versions are used as far as they go. Without definitions, as where files
// are read, there is nothing to check.
func VersionOf(definitions iter.Seq[*metav1.PartialObjectMetadata]) (Version, bool) {
	made, _ := majorMinor(consts.BundleVersion)
	others := map[string][]string{} // names of definitions by version
	refused, some := false, false
	for d := range definitions {
		some = true
		bundle := d.Annotations[consts.BundleVersionAnnotation]
		version, known := majorMinor(bundle)
		if known && version == made {
			continue
		}
		if bundle == "" {
			bundle = "no version"
		}
		others[bundle] = append(others[bundle], d.Name)
		// Experimental kinds, some of which are not ours, don't stop all others.
		_, group, _ := strings.Cut(d.Name, ".")
		refused = refused || group == gwv1.GroupName && (!known || version.major != made.major)
	}
	switch {
	case !some:
		return Version{}, false
	case len(others) == 0:
		return Version{Supported: condition.SupportedVersion(consts.BundleVersion)}, true
	case refused:
		found := versionsText(others)
		return Version{
			Supported: condition.UnusableVersion(found, consts.BundleVersion),
			Refused:   condition.ClassUnusableVersion(found, consts.BundleVersion),
		}, true
	default:
		return Version{Supported: condition.UnsupportedVersion(versionsText(others), consts.BundleVersion)}, true
	}
}

// release is the part of a version that tells what an API has.
type release struct{ major, minor string }

var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+].*)?$`)

func majorMinor(version string) (release, bool) {
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return release{}, false
	}
	return release{m[1], m[2]}, true
}

// versionsText lists versions, each with a definition that is of it.
func versionsText(found map[string][]string) string {
	var list []string
	for version, names := range found {
		slices.Sort(names)
		text := fmt.Sprintf("%s (%s", version, names[0])
		if more := len(names) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, text+")")
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// declareVersion checks the definitions; one entry, or none where there are none.
func (g *Graph) declareVersion() flow.Table[struct{}, Version] {
	all := flow.NewIndex(g.in.Definitions,
		func(_ string, _ *metav1.PartialObjectMetadata, yield func(struct{})) { yield(struct{}{}) },
		strings.Compare)
	return flow.Group("topology-version", all,
		func(_ *flow.Ctx, _ struct{}, list flow.Members[string, *metav1.PartialObjectMetadata]) (Version, bool) {
			return VersionOf(func(yield func(*metav1.PartialObjectMetadata) bool) {
				for _, d := range list.All() {
					if !yield(d) {
						return
					}
				}
			})
		})
}
