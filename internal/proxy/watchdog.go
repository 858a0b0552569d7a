package proxy

import "time"

// silenceLimit is how long an Envoy may not answer before it is worth a
// person's attention. Its main thread is silent for seconds while it takes in a
// large configuration.
const silenceLimit = time.Minute

// silence notices an Envoy that runs and does not answer. Nothing is done about
// it but to say so: its workers serve on when its main thread hangs, and ending
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
