package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// asked is a configuration whose requests for Secrets by name are given to a function
// after they have been answered.
func asked(config *rest.Config, answered func(r *http.Request)) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/") {
				answered(r)
			}
			return answer, err
		})
	})
	return config
}

// A Secret that is deleted while its first reading is on its way doesn't come back with
// it: nothing would ever take it away again.
func TestDeletedWhileRead(t *testing.T) {
	slow.Skip(t)
	c := newCluster(t, apiserver.Options{Channel: apiserver.Standard})
	c.create(t, namespace("team", nil), secret("team", "a", "1"))
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r, _ := read(t, asked(c.Config, func(*http.Request) {
		once.Do(func() { close(begun); <-release })
	}), Options{})
	name := object.Name{Namespace: "team", Name: "a"}
	key := object.Key{Kind: kind.Secret, Name: name}
	_, reading := r.Want([]object.Name{name}, nil)
	taken := make(chan func() int)
	go func() {
		take := reading(t.Context())
		taken <- func() int { return len(take().Set) }
	}()
	<-begun
	_, seen := r.count(key)
	c.delete(t, secret("team", "a", ""))
	r.wait("the end of the Secret is seen", func() bool { return r.live[key] > seen })
	r.wait("the end of the Secret is taken in", func() bool { return r.Unread() == 0 })
	close(release)
	if n := (<-taken)(); n != 0 {
		t.Error("a Secret that is deleted has come with its first reading")
	}
	if o := r.object(key); o != nil {
		t.Errorf("a Secret that is deleted is there: %v", o)
	}
}

// A namespace that asks for more contents than anyone needs waits for them alone: what the
// loop waits for is bounded, others have their turn, and the rest comes later.
func TestContentsInTurns(t *testing.T) {
	slow.Skip(t)
	const flood = awaited + 4*turn
	c := newCluster(t, apiserver.Options{Channel: apiserver.Standard})
	c.create(t, namespace("flood", nil), namespace("calm", nil), secret("calm", "a", "1"))
	names := []object.Name{{Namespace: "calm", Name: "a"}}
	var group sync.WaitGroup
	work := make(chan string)
	for range 16 {
		group.Go(func() {
			for name := range work {
				if err := c.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flood", Name: name}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range flood {
		name := fmt.Sprint("s-", i)
		names = append(names, object.Name{Namespace: "flood", Name: name})
		work <- name
	}
	close(work)
	group.Wait()

	var before, all atomic.Int32 // those of the flood, until the calm one has been read
	r, _ := read(t, asked(c.Config, func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/calm/") {
			before.Store(all.Load())
		}
		all.Add(1)
	}), Options{})
	b := r.want(names, nil)
	if n := len(b.Set); n < awaited || n > awaited+1+2*turn {
		t.Errorf("%d contents were waited for", n)
	}
	if r.object(object.Key{Kind: kind.Secret, Name: names[0]}) == nil {
		t.Error("the calm one is not among them")
	}
	if n := before.Load(); n > 2*readers {
		t.Errorf("%d of the flood were read before the calm one", n)
	}
	r.wait("all contents have come", func() bool {
		n := 0
		for k := range r.objects {
			if k.Kind == kind.Secret {
				n++
			}
		}
		return n == len(names) && r.Unread() == 0
	})
}
