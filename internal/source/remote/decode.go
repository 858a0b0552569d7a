package remote

import (
	"errors"
	"fmt"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// maxFaults bounds what is said about one object.
const maxFaults = 20

// read returns what a resource says of an object, without what was known of it.
func (s *Source) read(key object.Key, r *discoveryv3.Resource) *entry {
	text, err := wire.Text(r)
	if err != nil {
		return s.refused(key, schema.Identity{}, nil, err)
	}
	e := s.decode(key, text)
	if len(e.problems) == 0 {
		e.version = r.GetVersion()
		e.object.SetResourceVersion(r.GetVersion())
	}
	return e
}

// decode validates an object's text.
func (s *Source) decode(key object.Key, text []byte) *entry {
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return s.refused(key, schema.Identity{}, nil, fmt.Errorf("it is no object in JSON: %w", err))
	}
	id, err := s.validator.Identify(content)
	switch {
	case err != nil && id.Key == key: // of a version that isn't read
		return s.refused(key, id, content, err)
	case err != nil:
		return s.refused(key, schema.Identity{}, nil, err)
	case id.Key != key:
		return s.refused(key, schema.Identity{}, nil, fmt.Errorf("its content is %s", id.Key))
	}
	generation := int64(1)
	if meta, ok := content["metadata"].(map[string]any); ok {
		if n, ok := meta["generation"].(int64); ok && n > 0 {
			generation = n
		}
	}
	o, errs := s.validator.Decode(id, content)
	if len(errs) > 0 {
		causes, errs := schema.CausesOf(errs)
		var told []error
		for _, err := range errs {
			if !causes.Cause(err) {
				told = append(told, err)
			}
		}
		return s.refused(key, id, content, told...)
	}
	o.SetGeneration(generation)
	return &entry{object: o}
}

// refused is an object that is not valid, with its stand-in where it guards.
func (s *Source) refused(key object.Key, id schema.Identity, content map[string]any, errs ...error) *entry {
	e := &entry{}
	for _, err := range errs {
		p := source.Problem{Key: key, File: s.Name(), Reason: source.Invalid, Message: err.Error()}
		var invalid *field.Error
		var unknown *schema.UnknownKindError
		switch {
		case len(e.problems) == maxFaults:
			p.Message = "and more like these"
			e.problems = append(e.problems, p)
			return s.guarded(e, id, content)
		case errors.As(err, &unknown):
			p.Field, p.Reason, p.Message = unknown.Field, source.Unknown, unknown.Text
		case errors.As(err, &invalid):
			if p.Field = invalid.Field; p.Field == "<nil>" {
				p.Field = ""
			}
			p.Message = schema.Message(invalid)
		}
		e.problems = append(e.problems, p)
	}
	return s.guarded(e, id, content)
}

// guarded gives an object that never was valid its stand-in.
func (s *Source) guarded(e *entry, id schema.Identity, content map[string]any) *entry {
	if content == nil {
		return e
	}
	if o := s.validator.StandIn(id, content); o != nil {
		o.SetGeneration(1)
		e.object, e.standIn = o, true
	}
	return e
}

// succeed gives an object that is refused what was in force of it before.
func (e *entry) succeed(was *entry) {
	if len(e.problems) == 0 || was == nil || was.object == nil {
		return
	}
	if e.object == nil || !was.standIn {
		e.object, e.standIn = was.object, was.standIn
	}
	if !e.standIn {
		for i := range e.problems {
			e.problems[i].Stale = true
		}
	}
}

// summary says in a line what is wrong with objects.
func summary(problems []source.Problem) string {
	var lines []string
	for i, p := range problems {
		if i == maxFaults {
			lines = append(lines, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		p.File = ""
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "; ")
}
