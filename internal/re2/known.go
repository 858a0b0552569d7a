package re2

import "sync"

// known is what has been found out about expressions. It changes nothing but the time that
// an answer takes.
var known = cache{}

type result struct {
	size int
	err  error
}

// cache keeps results in two generations. When the young one is full it becomes the old
// one, whose entries are lost unless somebody asks for them.
type cache struct {
	mu         sync.Mutex
	young, old map[string]result
	bytes      int // of the young ones' patterns, and a little for each
}

const (
	// generation is how many bytes of patterns one of the two has.
	generation = 4 << 20
	entryBytes = 64
)

func (c *cache) get(pattern string) (result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.young[pattern]; ok {
		return r, true
	}
	r, ok := c.old[pattern]
	if ok {
		c.add(pattern, r)
	}
	return r, ok
}

func (c *cache) put(pattern string, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(pattern, r)
}

func (c *cache) add(pattern string, r result) {
	size := len(pattern) + entryBytes
	if c.young == nil || c.bytes+size > generation {
		c.young, c.old, c.bytes = map[string]result{}, c.young, 0
	}
	if _, there := c.young[pattern]; !there {
		c.young[pattern] = r
		c.bytes += size
	}
}
