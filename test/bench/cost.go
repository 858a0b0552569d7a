package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// cost is what a piece of work took of this process.
type cost struct {
	cpu   time.Duration // user and system, of all threads
	alloc uint64        // bytes
}

func (c *cost) add(o cost) { c.cpu += o.cpu; c.alloc += o.alloc }

// cpuTime returns the CPU time that this process has used so far.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// spend runs work and returns what it took. The garbage collector waits: whether
// a cycle falls into a short measurement is chance, so its share is computed from
// the allocation instead, see collection.
func spend(work func() error) (cost, error) {
	percent := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(percent)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, err := cpuTime()
	if err != nil {
		return cost{}, err
	}
	if err := work(); err != nil {
		return cost{}, err
	}
	end, err := cpuTime()
	if err != nil {
		return cost{}, err
	}
	runtime.ReadMemStats(&after)
	return cost{end - start, after.TotalAlloc - before.TotalAlloc}, nil
}

// liveHeap returns the bytes of the heap that are in use. Two cycles: what a
// sync.Pool holds survives one.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// collection is what one cycle of the garbage collector takes, and after how
// many allocated bytes the next one is due.
type collection struct {
	cpu   time.Duration
	every uint64
}

// measureCollection runs cycles over the heap as it is now. At the default
// GOGC=100 a cycle is due when as much was allocated as is live.
func measureCollection() (collection, error) {
	const cycles = 3
	live := liveHeap()
	start, err := cpuTime()
	if err != nil {
		return collection{}, err
	}
	for range cycles {
		runtime.GC()
	}
	end, err := cpuTime()
	if err != nil {
		return collection{}, err
	}
	return collection{(end - start) / cycles, max(live, 4<<20)}, nil // the runtime's smallest heap is 4 MiB
}

// of returns the share of collections that an allocation causes.
func (c collection) of(alloc float64) time.Duration {
	return time.Duration(float64(c.cpu) * alloc / float64(c.every))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
