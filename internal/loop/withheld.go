package loop

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// withheld are Gateways whose proxies are told nothing new; nil where there are none.
type withheld func(gateway object.Name) bool

// has reports whether an update waits although nothing comes that it waits for. The end of a Gateway
// opens nothing.
func (w withheld) has(u *xds.Update) bool { return w != nil && !u.Gone && w(u.Gateway) }

// or reports the Gateways of both.
func (w withheld) or(others withheld) withheld {
	switch {
	case w == nil:
		return others
	case others == nil:
		return w
	}
	return func(gateway object.Name) bool { return w(gateway) || others(gateway) }
}

// withheld are the Gateways that may depend on something that could not be computed.
func (l *Loop) withheld() withheld {
	of := l.Pipeline.Withheld()
	if l.publication.withholds != (of != nil) {
		l.publication.withholds = of != nil
		logWithheld(l.Log, of != nil)
	}
	return of
}

// tellWithheld has statuses say of which Gateways the proxies are told nothing new.
func (l *Loop) tellWithheld(w withheld) {
	p := &l.publication
	if w == nil && len(p.waits) == 0 {
		return
	}
	now := map[object.Name]bool{}
	if w != nil {
		for gateway := range l.present {
			if w(gateway) {
				now[gateway] = !p.known[gateway]
			}
		}
	}
	for i := range p.updates { // what is left of them
		u := &p.updates[i]
		if _, is := now[u.Gateway]; is && len(u.Set)+len(u.Remove) > 0 {
			now[u.Gateway] = true
		}
	}
	if maps.Equal(now, p.waits) {
		return
	}
	l.update(func(tx *flow.Tx) { l.Pipeline.TakeWithheld(tx, p.waits, now) })
	p.waits = now
}
