package apply

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
)

// replacementPatience is how long an object may wait for the one that takes its place before people
// are told.
const replacementPatience = 5 * time.Minute

// isInformed reports whether what there should be was said with the knowledge of what objects replace.
func (s *childrenSync) isInformed() bool {
	if !s.want.Replaces {
		return true
	}
	made := s.in.made()
	for i := range s.want.Children {
		child := &s.want.Children[i]
		if child.Replacement == nil {
			continue
		}
		ref := child.Ref()
		before := slices.DeleteFunc(made[child.Place], func(r blueprint.Ref) bool { return r == ref })
		if !slices.Equal(before, child.Replacement.Before) {
			return false
		}
	}
	return true
}

// successor is what takes the place of an object; nil where nothing does, or where that has no order.
func (s *childrenSync) successor(e inventoryEntry) *blueprint.Child {
	if s.want == nil {
		return nil
	}
	for i := range s.want.Children {
		if c := &s.want.Children[i]; c.Place == e.Place && c.Replacement != nil {
			return c
		}
	}
	return nil
}

// stays says why an object stays of which another one takes the place; nil where it may go.
func (s *childrenSync) stays(e inventoryEntry) *problem {
	by := s.successor(e)
	if by == nil {
		return nil
	}
	why := s.waitsFor(by)
	if why == "" {
		return nil
	}
	p := &problem{text: fmt.Sprintf("stays until %s has taken its place: %s", by.Ref(), why)}
	if live := s.live[keyOfRef(by.Ref())]; live != nil && time.Since(live.GetCreationTimestamp().Time) > s.replacementPatience {
		p.reason = reasonNotReplaced
	}
	return p
}

// waitsFor says what is missing until an object has taken the place of others: it is ready, and those that
// read it have been made with it and are ready again.
func (s *childrenSync) waitsFor(by *blueprint.Child) string {
	for _, h := range s.want.Undecided {
		if slices.Contains(by.Replacement.Readers, h.ID) {
			return h.Place.String() + ": " + h.Why
		}
	}
	for i := range s.want.Children {
		c := &s.want.Children[i]
		if c != by && !slices.Contains(by.Replacement.Readers, c.ID) {
			continue
		}
		// What is said of whether it is ready must be said of what is in the cluster now.
		live := s.live[keyOfRef(c.Ref())]
		switch {
		case live == nil || !c.Live || live.GetResourceVersion() != c.Version:
			return c.Ref().String() + " is being changed"
		case c.NotReady != "":
			return c.Ref().String() + " is not ready: " + c.NotReady
		case c.Replacement != nil && !c.Replacement.Read:
			return c.Ref().String() + " is not read yet"
		}
	}
	return ""
}

// tell passes on which objects there are, where that matters and is new.
func (s *childrenSync) tell() {
	gateway, made := s.in.gateway, map[blueprint.Place][]blueprint.Ref(nil)
	if s.want != nil && s.want.Replaces {
		made = s.in.made()
	}
	s.mu.Lock()
	told := maps.EqualFunc(s.told[gateway], made, slices.Equal)
	set(s.told, gateway, made)
	s.mu.Unlock()
	if !told {
		s.o.OnMade(gateway, made)
	}
}
