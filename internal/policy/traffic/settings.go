package traffic

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// settings are all that a policy can say, sorted by name.
var settings = []setting{
	row("backend.loadBalancing", func(s *v1alpha1.TrafficSettings) *v1alpha1.LoadBalancing { return s.Backend.LoadBalancing }, (*reader).loadBalancing),
	row("request.maxBodySize", func(s *v1alpha1.TrafficSettings) *size { return s.Request.MaxBodySize }, (*reader).maxBodySize),
	row("response.compression", func(s *v1alpha1.TrafficSettings) *v1alpha1.Compression { return s.Response.Compression }, (*reader).compression),
}

// setting is one thing that a policy can say.
type setting struct {
	name string // its field, by which policies are merged
	// said returns the field; nil where a policy doesn't have it.
	said func(*v1alpha1.TrafficSettings) any
	// read reads the field, which is there, and notes what is wrong with it.
	read func(*reader, *v1alpha1.TrafficSettings, *ir.Traffic)
}

// row makes a setting of a field, and of how that is read.
func row[T any](name string, field func(*v1alpha1.TrafficSettings) *T, read func(*reader, *T, *ir.Traffic)) setting {
	return setting{
		name: name,
		said: func(s *v1alpha1.TrafficSettings) any {
			if v := field(s); v != nil {
				return v
			}
			return nil
		},
		read: func(r *reader, s *v1alpha1.TrafficSettings, out *ir.Traffic) { read(r, field(s), out) },
	}
}

// Settings are the names of all settings.
func Settings() (names []string) {
	for i := range settings {
		names = append(names, settings[i].name)
	}
	return names
}

// reader reads the settings of a policy.
type reader struct{ inherited.Reader }
