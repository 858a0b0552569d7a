package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Where a promotion is automatic, one proxy of the new revision gets requests beside those that serve, and the
// figures of both are compared. What that comes to is on the Deployment of the revision. What was counted until then
// is in memory only: another controller compares anew.

const (
	readEvery   = 5 * time.Second
	readTimeout = 2 * time.Second
	maxFigures  = 16 << 20 // bytes that are read of a proxy
	// settle is how often is looked until what the new proxy refuses counts: those that serve may refuse the same,
	// and say so later.
	settle = 3
	// early is after how many requests of the new proxy it need not wait for the end of the window to be found worse.
	early = 1000
)

// comparison is one that is under way.
type comparison struct {
	revision   string
	began      time.Time
	read       time.Time
	before     map[types.UID]figures.Answers
	live, next figures.Answers
	why        string // it isn't at its end
	refused    int    // for how many looks the new proxy has refused what others take
}

// verdict is what a comparison of a revision has come to; empty where there was none.
func verdict(workload client.Object) (is figures.Verdict, why string) {
	if workload == nil {
		return "", ""
	}
	word, why, _ := strings.Cut(workload.GetAnnotations()[infra.VerdictAnnotation], ": ")
	return figures.Verdict(word), why
}

// compare reads what proxies have answered, and writes down what that comes to.
func (f *Fleets) compare(ctx context.Context, g *infra.Gateway, p *pair) error {
	f.mu.Lock()
	c := f.comparisons[g.Name]
	if !p.compared {
		delete(f.comparisons, g.Name)
		c = nil
	} else if c == nil || c.revision != p.revision {
		c = &comparison{revision: p.revision, began: time.Now(), before: map[types.UID]figures.Answers{}}
		f.comparisons[g.Name] = c
	}
	f.mu.Unlock()
	if c == nil {
		return nil
	}
	f.queue.AddAfter(g.Name, f.readEvery)
	if time.Since(c.read) < f.readEvery {
		return nil
	}
	first := len(c.before) == 0 // also after looks at which the revision refused something
	c.read = time.Now()
	c.why = ""
	if p.refuses != "" {
		c.why = "it refuses what those that serve take, " + p.refuses
		if c.refused++; c.refused < settle {
			return nil
		}
		return f.judge(ctx, g, p, figures.Worse, c.why)
	}
	c.refused = 0
	for workload, sum := range map[string]*figures.Answers{p.live.GetName(): &c.live, p.name: &c.next} {
		for _, pod := range f.podsOf(g.Name, object.Name{Namespace: p.live.GetNamespace(), Name: workload}) {
			now, err := f.answers(ctx, pod)
			if err != nil {
				c.why = fmt.Sprintf("the figures of Pod %s/%s can't be read", pod.Namespace, pod.Name)
				f.log.Debug("the figures of a proxy can't be read", "pod", pod.Namespace+"/"+pod.Name, "error", err)
				continue
			}
			if !first {
				sum.Add(c.before[pod.UID], now)
			}
			c.before[pod.UID] = now
		}
	}
	settings, err := g.Promotion()
	if err != nil {
		return err
	}
	is, text := figures.Compare(c.live, c.next, figures.Margins{Errors: settings.MaxErrorIncrease, Latency: settings.MaxLatencyIncrease})
	over := time.Since(c.began) >= settings.Window
	switch {
	case is == figures.Worse && (over || c.next.Requests >= early):
	case !over || c.why != "":
		return nil
	case is == figures.TooEarly:
		c.why = text
		return nil
	}
	return f.judge(ctx, g, p, is, text)
}

// judge writes down what a comparison has come to.
func (f *Fleets) judge(ctx context.Context, g *infra.Gateway, p *pair, is figures.Verdict, text string) error {
	f.log.Info("a revision of proxies has been compared", "gateway", g.Name.String(), "revision", p.revision, "verdict", string(is), "figures", text)
	note, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{infra.VerdictAnnotation: string(is) + ": " + text}}})
	if err != nil {
		return err
	}
	err = f.client.Patch(ctx, p.next.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, note), client.FieldOwner(infra.ManagedBy+"-verdict"))
	f.count("Deployment", "apply", err)
	return err
}

// comparing says why a comparison isn't at its end, where that takes more than its time.
func (f *Fleets) comparing(gateway object.Name) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.comparisons[gateway]; c != nil {
		return c.why
	}
	return ""
}

// readAnswers asks a proxy for its metrics.
func readAnswers(ctx context.Context, pod *corev1.Pod) (figures.Answers, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(infra.HealthPort))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/metrics", nil)
	if err != nil {
		return figures.Answers{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return figures.Answers{}, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return figures.Answers{}, fmt.Errorf("it answers %s", res.Status)
	}
	return figures.ReadAnswers(io.LimitReader(res.Body, maxFigures))
}
