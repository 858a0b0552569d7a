package proxy

import (
	"testing"
	"time"
)

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
