package flow

// failing is what stands failed: what derives from it may be what it was before, or lack what
// should be there. It is empty nearly always, and what succeeds then looks at its length at most.
type failing map[failed]Failure

// failed names a unit, an aggregate, or an entry of which an index does not know where it stands.
type failed struct{ of, key any }

func (e *Engine) fails(of, key any, f Failure) {
	if e.failing == nil {
		e.failing = failing{}
	}
	e.failing[failed{of, key}] = f
}

func (e *Engine) heals(of, key any) { delete(e.failing, failed{of, key}) }

// Mark is a place in the order of an engine's tables.
type Mark int

// Declared returns the place behind the tables declared so far.
func (e *Engine) Declared() Mark {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return Mark(len(e.tables))
}

// Failing returns what stands failed of the tables before a place, in no order: units whose last run failed,
// and entries that an index or an aggregate lacks. By law 2 nothing declared before that place
// depends on any other failure. It costs nothing while nothing fails.
func (e *Engine) Failing(before Mark) (out []Failure) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, f := range e.failing {
		if f.id < int(before) {
			out = append(out, f)
		}
	}
	return out
}

// FailedIn reports whether a failure is one of a table, or of an index of it.
func FailedIn[K comparable, V any](t Table[K, V], f Failure) bool { return t.info().id == f.id }

// Trip is for tests: fn is called after each call of a table's function, and a panic
// of it is one of that function. Nil ends it.
func (e *Engine) Trip(fn func(table string, key any)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trip = fn
}
