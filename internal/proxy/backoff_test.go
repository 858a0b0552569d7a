package proxy

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	var b backoff
	for i, most := range []time.Duration{0, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000} {
		most *= time.Millisecond
		if d := b.next(time.Second); d < most/2 || d > most {
			t.Errorf("start %d after %s, want %s to %s", i+1, d, most/2, most)
		}
	}
	if d := b.next(stableAfter); d != 0 {
		t.Errorf("after a stable life: %s", d)
	}
	if d := b.next(0); d == 0 {
		t.Error("the second end in a row is followed at once")
	}
}
