package loop

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// late are the Services that a publication waits for. A watch of one kind doesn't wait for that of another: a
// route may come before the Service that was made before it, and would be answered with 500 until that comes, or
// with 503 until its EndpointSlice does. So a Gateway that has begun to refer to a Service that isn't there waits
// for it, with all of its changes, so that their order stays, and so do others that have changed in the same
// transaction: for a moment, once.
type late struct {
	services map[object.Name]struct{}
	gateways map[object.Name]struct{}
	deadline deadline
}

// end ends the waiting: what is missing is missing.
func (w *late) end() {
	clear(w.services)
	clear(w.gateways)
	w.deadline.clear()
}

// awaitLate has the Gateways of a commit's updates wait for what they have begun to refer to and is not there. A
// Gateway that proxies have not been told of waits for nothing: who asks it has no answer yet.
func (l *Loop) awaitLate(updates []xds.Update) {
	if l.Late == 0 {
		return
	}
	missed := l.Pipeline.Missed()
	if len(missed) == 0 {
		return
	}
	w := &l.publication.late
	for _, u := range updates {
		if l.publication.known[u.Gateway] && !u.Gone {
			w.gateways[u.Gateway] = struct{}{}
		}
	}
	if len(w.gateways) == 0 {
		return
	}
	for _, service := range missed {
		w.services[service] = struct{}{}
	}
	if !w.deadline.isSet() { // whoever comes later doesn't hold up those who wait
		w.deadline.set(l, l.Late, w.end)
	}
}

// noteArrivals ends the waiting when all has come.
func (l *Loop) noteArrivals() {
	w := &l.publication.late
	if len(w.services) == 0 {
		return
	}
	l.Pipeline.Engine.View(func(c *flow.Ctx) {
		maps.DeleteFunc(w.services, func(service object.Name, _ struct{}) bool { return !l.Pipeline.Lacking(c, service) })
	})
	if len(w.services) == 0 {
		w.end()
	}
}
