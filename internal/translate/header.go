package translate

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// internalHeaders begins the names by which Envoys tell each other what to do.
// None enters or leaves at the edge, so that setting one could only have effects
// inside of Envoy, on timeouts and retries for example.
const internalHeaders = "x-envoy-"

// hopHeader is by what Gateways tell a request that goes round.
const hopHeader = "x-gatehouse-hop"

// headerChanges translates a header modifier of requests or of responses; name is
// the field of the filter.
func (t *translation) headerChanges(at position, name string, f *gwv1.HTTPHeaderFilter) *ir.HeaderChanges {
	if len(f.Set)+len(f.Add)+len(f.Remove) == 0 {
		return nil
	}
	c := &ir.HeaderChanges{
		Set: t.headerValues(at, name+".set", f.Set),
		Add: t.headerValues(at, name+".add", f.Add),
	}
	for i, header := range f.Remove {
		header = t.headerName(at, name+".remove", i, header)
		if !slices.Contains(c.Remove, header) {
			c.Remove = append(c.Remove, header)
		}
	}
	t.oneAction(at, name, c)
	return c
}

// headerValues translates the headers of one action. Of several with the same
// name, which can differ in case only, the first counts.
func (t *translation) headerValues(at position, name string, list []gwv1.HTTPHeader) []ir.Header {
	if len(list) == 0 {
		return nil
	}
	out := make([]ir.Header, 0, len(list))
	for i := range list {
		header := t.headerName(at, name, i, string(list[i].Name))
		if strings.HasPrefix(header, internalHeaders) {
			f := at.field(item(name, i))
			t.refuse(f, condition.HeaderInternal(f, string(list[i].Name)))
		}
		if !ir.IsFieldValue(list[i].Value) {
			f := at.field(item(name, i) + ".value")
			t.refuse(f, condition.InvalidHeaderValue(f, header))
		}
		if !slices.ContainsFunc(out, named(header)) {
			out = append(out, ir.Header{Name: header, Value: list[i].Value})
		}
	}
	return out
}

// headerName checks the name of a header that is to be changed, and lowers it.
func (t *translation) headerName(at position, list string, i int, name string) string {
	lower := strings.ToLower(name)
	switch {
	case lower == "host" || strings.HasPrefix(lower, ":"):
		// Envoy refuses both. The specification has URLRewrite for the host, and no
		// other pseudo-header can be named.
		f := at.field(item(list, i))
		t.refuse(f, condition.HeaderNotModifiable(f, name))
	case lower == hopHeader:
		f := at.field(item(list, i))
		t.refuse(f, condition.HeaderEndsLoops(f, name))
	case ir.IsFraming(lower):
		f := at.field(item(list, i))
		t.refuse(f, condition.HeaderFramesMessage(f, name))
	case !ir.IsToken(lower):
		f := at.field(item(list, i))
		t.refuse(f, condition.InvalidHeaderName(f, name))
	}
	return lower
}

// oneAction checks that no header has several actions: the specification calls
// such a filter invalid.
func (t *translation) oneAction(at position, name string, c *ir.HeaderChanges) {
	twice := func(header string) {
		f := at.field(name)
		t.refuse(f, condition.HeaderTwice(f, header))
	}
	for _, h := range c.Add {
		if slices.ContainsFunc(c.Set, named(h.Name)) {
			twice(h.Name)
		}
	}
	for _, header := range c.Remove {
		if slices.ContainsFunc(c.Set, named(header)) || slices.ContainsFunc(c.Add, named(header)) {
			twice(header)
		}
	}
}

func named(name string) func(ir.Header) bool {
	return func(h ir.Header) bool { return h.Name == name }
}
