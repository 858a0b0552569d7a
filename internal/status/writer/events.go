package writer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// tell makes events of what has come up that a person should know of. Where it is too early
// for another one, it returns when to be called again, with the status as it is then.
func (w *Writer) tell(o *tracked, live client.Object, s *kind.Status, before, after any, now time.Time) time.Duration {
	if w.opts.Events == nil {
		return 0
	}
	if o.untold != nil {
		before = o.untold
	}
	news := newsIn(s, before, after)
	if wait := eventGap - now.Sub(o.told); wait > 0 && len(news) > 0 {
		o.untold = before
		return wait
	}
	o.untold = nil
	for _, c := range news {
		o.told = now
		w.opts.Events.Eventf(live, nil, corev1.EventTypeWarning, condition.EventReason(c), "Program", "%s", cut(c.Message))
	}
	return 0
}

// newsIn returns the conditions that are worth an event, and of which no earlier one had
// the message.
func newsIn(s *kind.Status, before, after any) (news []metav1.Condition) {
	known := map[string]bool{}
	for _, list := range s.Conditions(before) {
		for _, c := range list {
			if condition.EventReason(c) != "" {
				known[c.Message] = true
			}
		}
	}
	for _, list := range s.Conditions(after) {
		for _, c := range list {
			if condition.EventReason(c) != "" && !known[c.Message] && len(news) < mostEvents {
				known[c.Message] = true
				news = append(news, c)
			}
		}
	}
	return news
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
