package proxy

import (
	"testing"
	"time"
)

// A standstill is time without any work. A busy process has none, nor has one that waits
// for a processor or of which the system doesn't tell, and a pause of our own counts for
// little.
func TestStandstill(t *testing.T) {
	var s standstill
	now, waits := time.Now(), false
	look := func(after, used, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := s.look(now, used, waits); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	look(0, 5, 0)
	look(time.Second, 5, time.Second)
	look(time.Hour, 5, time.Second+stillStep)
	look(time.Second, 6, 0)
	look(time.Second, 6, time.Second)
	waits = true
	look(time.Second, 6, 0)
	waits = false
	look(time.Second, 6, time.Second)
	look(time.Second, 0, 0)
	look(time.Second, 0, 0)
}

// A hung Envoy is told of once, not for being slow, and not for ever.
func TestSilence(t *testing.T) {
	var s silence
	now := time.Now()
	missed := func(after time.Duration, want bool) {
		t.Helper()
		if got := s.missed(now.Add(after)); got != want {
			t.Errorf("after %s: %v", after, got)
		}
	}
	missed(0, false)
	missed(silenceLimit-1, false)
	if s.heard() {
		t.Error("a short silence was told")
	}
	missed(silenceLimit, false)
	missed(2*silenceLimit, true)
	missed(3*silenceLimit, false)
	if !s.heard() || s.heard() {
		t.Error("the end of a silence is told once")
	}
}
