package flow

// Missed is for a source whose tables come one by one, in no certain order: who knows that something has just been
// asked for that isn't there may wait for it a little.

// note remembers that something has got its first reader.
func (h *home) note(on *watch) {
	if h.noting {
		h.noted = append(h.noted, on)
	}
}

// NoteMissed has Missed know what is asked for from now on. Whoever calls it calls Missed after each transaction.
func (t *Input[K, V]) NoteMissed() { t.noting = true }

// Missed returns the keys that table functions have begun to read since the last call, and that have no value.
func (t *Input[K, V]) Missed() (keys []K) {
	for _, on := range t.noted {
		if on.first != nil && !on.ok {
			keys = append(keys, cellOf[K, V](on).key)
		}
	}
	t.noted = emptied(t.noted)
	return keys
}

// NoteMissed is that of an Input, for the index's keys.
func (x *Index[I, K, V]) NoteMissed() { x.noting = true }

// Missed returns the keys that table functions have begun to read since the last call, and that nothing stands under.
func (x *Index[I, K, V]) Missed() (keys []I) {
	for _, on := range x.noted {
		if b := bucketOf[I, K, V](on); on.first != nil && len(b.cells) == 0 {
			keys = append(keys, b.key)
		}
	}
	x.noted = emptied(x.noted)
	return keys
}
