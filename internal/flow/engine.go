package flow

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Engine owns a set of tables and runs transactions over them.
type Engine struct {
	mu      sync.RWMutex
	tables  []table
	names   map[string]bool
	started bool
	version uint64
	commit  *Commit   // the transaction under way
	due     []uint64  // a bit for each table that has units to run
	changed []changed // watched tables that did in the transaction under way
	failing failing
	trip    func(table string, key any) // see Trip
}

// table is what the engine needs of every table, whatever its types.
type table interface {
	info() *meta
	// settle brings the table up to date with the tables declared before it, after
	// one of its units was woken.
	settle()
	len() int
	dump(yield func(key, value any) bool)
}

// changed is what a commit learns a watched table's changes from.
type changed interface{ finish() }

// New returns an engine without tables.
func New() *Engine {
	return &Engine{names: map[string]bool{}}
}

// meta is a table's name, place and counters.
type meta struct {
	engine  *Engine
	name    string
	id      int
	runs    uint64
	changes uint64
	panics  uint64
	spent   time.Duration
}

func (e *Engine) declare(name string, t table) meta {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		panic("flow: table " + name + " declared after the first transaction")
	}
	if e.names[name] {
		panic("flow: two tables are named " + name)
	}
	e.names[name] = true
	if len(e.tables)%64 == 0 {
		e.due = append(e.due, 0)
	}
	e.tables = append(e.tables, t)
	return meta{engine: e, name: name, id: len(e.tables) - 1}
}

// Tx is a transaction under way. Only with it can inputs be changed.
type Tx struct {
	engine *Engine
}

// Update runs one transaction: fn changes inputs, then every table that is
// touched by the changes is brought up to date. It returns what changed.
func (e *Engine) Update(fn func(tx *Tx)) *Commit {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = true
	e.version++
	e.commit = &Commit{Version: e.version}
	tx := &Tx{engine: e}
	fn(tx)
	tx.engine = nil // a Tx that outlives its transaction must not write
	e.settle()
	for _, t := range e.changed {
		t.finish()
	}
	e.changed = emptied(e.changed)
	c := e.commit
	e.commit = nil
	return c
}

// settle visits the tables that have units to run, in the order of declaration. Units
// wake only units of later tables, so that one pass is enough; and tables are many, so
// that a pass over all of them would cost more than most changes do.
func (e *Engine) settle() {
	start := time.Now()
	for i := range e.due {
		for e.due[i] != 0 {
			bit := bits.TrailingZeros64(e.due[i])
			e.due[i] &^= 1 << bit
			t := e.tables[64*i+bit]
			t.settle()
			end := time.Now()
			t.info().spent += end.Sub(start)
			start = end
		}
	}
}

// isDue says that a table has units to run.
func (m *meta) isDue() { m.engine.due[m.id/64] |= 1 << (m.id % 64) }

// View runs fn with read access to all tables, between two transactions.
func (e *Engine) View(fn func(c *Ctx)) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	fn(&Ctx{limit: len(e.tables)})
}

// Version counts the transactions.
func (e *Engine) Version() uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.version
}

// Failure describes a unit whose function panicked. The unit keeps its last outputs.
type Failure struct {
	Table string
	Key   any
	Value any // that the function was given with the key; nil in a Group, which is given several
	Cause any
	Stack string
	id    int // of the table
}

func (f Failure) Error() string {
	return fmt.Sprintf("table %s, key %v: %v", f.Table, f.Key, f.Cause)
}

// Commit is the outcome of a transaction.
type Commit struct {
	Version  uint64
	Failures []Failure
	changes  map[int]any // table id → []Change[K, V], watched tables only
}

// Stats are a table's counters since the engine was made.
type Stats struct {
	Table   string
	Entries int
	Runs    uint64        // units of work run
	Changes uint64        // entries added, changed or removed
	Panics  uint64        // units that kept their last outputs because they failed
	Failing int           // what stands failed, see Engine.Failing
	Spent   time.Duration // time in the table's functions, with its bookkeeping
}

// Stats returns the counters of every table, in the order of declaration.
func (e *Engine) Stats() []Stats {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]Stats, 0, len(e.tables))
	for _, t := range e.tables {
		m := t.info()
		out = append(out, Stats{m.name, t.len(), m.runs, m.changes, m.panics, 0, m.spent})
	}
	for _, f := range e.failing {
		out[f.id].Failing++
	}
	return out
}

// Dump yields the entries of the named table, ordered by the text of their keys.
// It reports false when there is no such table.
func (e *Engine) Dump(name string) (iter.Seq2[any, any], bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.tables, func(t table) bool { return t.info().name == name })
	if i < 0 {
		return nil, false
	}
	type entry struct {
		text       string
		key, value any
	}
	var all []entry
	e.tables[i].dump(func(k, v any) bool {
		all = append(all, entry{fmt.Sprint(k), k, v})
		return true
	})
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	return func(yield func(any, any) bool) {
		for _, x := range all {
			if !yield(x.key, x.value) {
				return
			}
		}
	}, true
}

// failed makes a panic a Failure of the current commit.
func (m *meta) failed(key, value, cause any) Failure {
	m.panics++
	f := Failure{m.name, key, value, cause, string(debug.Stack()), m.id}
	c := m.engine.commit
	c.Failures = append(c.Failures, f)
	return f
}
