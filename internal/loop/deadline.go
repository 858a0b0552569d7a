package loop

import "time"

// deadline is when a publication waits for something no longer. There is none while it doesn't wait.
type deadline struct{ timer *time.Timer }

func (d *deadline) isSet() bool { return d.timer != nil }

func (d *deadline) clear() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// set has the loop end the waiting, and go on, after some time.
func (d *deadline) set(l *Loop, after time.Duration, end func()) {
	running := l.publication.running
	var own *time.Timer
	own = time.AfterFunc(after, func() {
		l.Call(running, func() {
			if d.timer == own { // else it was another publication's
				end()
				l.proceed()
			}
		})
	})
	d.timer = own
}
