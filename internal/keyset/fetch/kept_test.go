package fetch

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// The next process has the sets of this one before it asks anybody.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, says(jwks(t, "good")))
	k, other := uri(s.URL+"/a"), uri(s.URL+"/b")
	f := run(t, Options{Roots: s.roots(), StateDir: dir}, nil)
	f.Want([]keyset.Key{k, other})
	f.awaitKey("good")
	f.awaitKey("good")
	path := filepath.Join(dir, keptFile)
	until(t, "it is kept", func() bool {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), `\"good\"`) == 2
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	f.Want([]keyset.Key{k})
	until(t, "what is not wanted is not kept", func() bool {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), `\"good\"`) == 1
	})
	f.end()
	s.Close()

	next := run(t, Options{Roots: s.roots(), StateDir: dir}, nil)
	known, unknown := next.Want([]keyset.Key{k, other})
	if a := known[k]; a == nil || !strings.Contains(a.Keys, "good") || known[other] != nil || !slices.Equal(unknown, []keyset.Key{other}) {
		t.Errorf("the next process knows %+v", known)
	}
	if a := next.await("what was kept stays", func(a keyset.Answer) bool { return a.Keys != "" }); a.Problem == "" || a.Since.IsZero() {
		t.Errorf("%+v", a)
	}
	next.end()

	for _, text := range []string{"nonsense", `[{"URI":"` + s.URL + `/a","Reach":"host","Keys":"{}"}]`, `{}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if known, _ := run(t, Options{Roots: s.roots(), StateDir: dir}, nil).Want([]keyset.Key{k}); len(known) > 0 {
			t.Errorf("%s: %+v", text, known)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longestWait); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// buffer is a log.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}
