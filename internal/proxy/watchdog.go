package proxy

import "time"

const (
	// silenceLimit is how long an Envoy that works may not answer before it is worth a
	// person's attention. Its main thread is silent for seconds while it takes in a
	// large configuration.
	silenceLimit = time.Minute

	// stillNoted is how long an Envoy stands still before that is its state.
	stillNoted = 2 * time.Second
	// stillLimit is how long it stands still before it is ended. With the pause before
	// the first question and the start of its successor that makes less than the 20 s
	// of docs/architecture/agent.md.
	stillLimit = 8 * time.Second
	// stillStep bounds what counts of the time between two looks: we may have been
	// stopped in it ourselves.
	stillStep = 2 * probeTimeout
)

// standstill adds up for how long an Envoy shows no sign of life: it answers nothing,
// and its main thread uses no processor time and wouldn't if it could. One that is busy
// uses some, or waits for its turn on a machine that has too much to do; a healthy one has
// timers that run many times a second.
type standstill struct {
	at     time.Time     // of the last look
	used   time.Duration // by its main thread until then
	lasted time.Duration
}

// look notes that Envoy has not answered, and returns for how long it has stood still.
// used is what its main thread has used of a processor; 0 is not known. A runnable one
// only waits for a processor.
func (s *standstill) look(now time.Time, used time.Duration, runnable bool) time.Duration {
	if s.at.IsZero() || used == 0 || used != s.used || runnable {
		*s = standstill{at: now, used: used}
		return 0
	}
	s.lasted += min(now.Sub(s.at), stillStep)
	s.at = now
	return s.lasted
}

// silence notices an Envoy that works and does not answer. Nothing is done about
// it but to say so: its workers serve on when its main thread is busy, and ending
// them would turn a proxy that can't be changed into one that is not there.
type silence struct {
	since time.Time
	told  bool
}

// missed notes a question without answer; true, once, when it is time to say so.
func (s *silence) missed(now time.Time) bool {
	if s.since.IsZero() {
		s.since = now
	}
	if s.told || now.Sub(s.since) < silenceLimit {
		return false
	}
	s.told = true
	return true
}

// heard notes an answer; true if the silence before it had been worth telling.
func (s *silence) heard() bool {
	told := s.told
	*s = silence{}
	return told
}
