package writer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

const (
	// eventGap is the least time between two events of an object: a proxy that is told
	// something new every second is no news.
	eventGap = 10 * time.Second
	// eventLength is how much of a message an event can hold, in bytes.
	eventLength = 1024
	// mostEvents is how many a write is worth. All listeners of a Gateway may have
	// something to say at once; the status has it all.
	mostEvents = 8
)

// tell makes events of what has come up that a person should know of.
func (w *Writer) tell(o *tracked, live client.Object, s *kind.Status, before, after any, now time.Time) {
	if w.opts.Events == nil || now.Sub(o.told) < eventGap {
		return
	}
	known, told := map[string]bool{}, 0
	for _, list := range s.Conditions(before) {
		for _, c := range list {
			if condition.EventReason(c) != "" {
				known[c.Message] = true
			}
		}
	}
	for _, list := range s.Conditions(after) {
		for _, c := range list {
			if reason := condition.EventReason(c); reason != "" && !known[c.Message] && told < mostEvents {
				known[c.Message] = true
				told++
				o.told = now
				w.opts.Events.Eventf(live, nil, corev1.EventTypeWarning, reason, "Program", "%s", cut(c.Message))
			}
		}
	}
}

func cut(text string) string {
	const more = " …"
	if len(text) <= eventLength {
		return text
	}
	end := eventLength - len(more)
	for end > 0 && text[end]&0xc0 == 0x80 { // not within a character
		end--
	}
	return text[:end] + more
}
