package loop

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// shadow is an object that is not used, since a source that is listed before its own defines
// it too.
type shadow struct {
	object.Key
	from int // its source
}

// problem is the key under which a shadow stands among the problems of files.
func (s shadow) problem() string { return fmt.Sprintf("\x00%s of %d", s.Key, s.from) }

// unused is the source that is used in a shadow's place, of those shadows that have changed;
// -1 for one that is used again or gone.
type unused map[shadow]int

// shade notes that an object is not used from now on, or is used again, or gone.
func (l *Loop) shade(k object.Key, by, from int, begins bool) {
	if l.unused[shadow{k, from}] = by; !begins {
		l.unused[shadow{k, from}] = -1
	}
	if l.Shadowed != nil {
		l.Shadowed(k, by, from, begins)
	}
}

// tellShadows makes what has changed of shadows part of a transaction.
func (l *Loop) tellShadows(tx *flow.Tx) {
	for sh, by := range l.unused {
		if by < 0 {
			l.Pipeline.Problems.Delete(tx, sh.problem())
			continue
		}
		l.Pipeline.Problems.Set(tx, sh.problem(), []source.Problem{{
			Key: sh.Key, Reason: source.Duplicate,
			Message: fmt.Sprintf("%s and %s define this object; the source listed first wins, so that this one of %s is not used",
				l.Sources[by], l.Sources[sh.from], l.Sources[sh.from]),
		}})
	}
	clear(l.unused)
}
