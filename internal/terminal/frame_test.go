package terminal

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

func gateway(name, state, message string, listeners ...view.ListenerRow) view.Item {
	return view.Item{
		TypeMeta: metav1.TypeMeta{Kind: "Gateway"}, Metadata: view.ItemMeta{Namespace: "default", Name: name},
		Summary: view.Summary{State: state, OK: state == "Programmed", Message: message, Class: "gatehouse", Listeners: listeners},
	}
}

func listenerSet(name, state, message string, listeners ...view.ListenerRow) view.Item {
	it := gateway(name, state, message, listeners...)
	it.Kind, it.Summary.Class, it.Summary.Parents = "ListenerSet", "", []string{"default/web"}
	return it
}

func listener(name string, port int, state, message string) view.ListenerRow {
	return view.ListenerRow{
		Name: name, Protocol: strings.ToUpper(name), Port: port, Addrs: []string{"127.0.0.1"}, Routes: 3,
		State: state, OK: state == "Programmed", Message: message,
	}
}

func route(name, host, state, message string) view.Item {
	it := view.Item{
		TypeMeta: metav1.TypeMeta{Kind: "HTTPRoute"}, Metadata: view.ItemMeta{Namespace: "default", Name: name},
		Summary: view.Summary{State: state, OK: state == "Accepted", Message: message, Parents: []string{"default/web"}, Path: "/"},
	}
	if host != "" {
		it.Summary.Hosts = []string{host}
	}
	return it
}

func problem(n int) source.Problem {
	return source.Problem{
		Key:  object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: fmt.Sprintf("bad-%d", n)}},
		File: fmt.Sprintf("manifests/bad-%d.yaml", n), Line: 12, Field: "spec.rules[0].backendRefs[0].port",
		Reason: source.Invalid, Message: "Invalid value: 99999: must be between 1 and 65535, inclusive", Stale: n == 0,
	}
}

// views are states of the world that a person may look at.
func views() map[string]view.View {
	quick := view.View{Ready: true, Items: []view.Item{
		gateway("web", "Programmed", "", listener("http", 8080, "Programmed", "")),
		route("hello", "", "Accepted", ""),
		route("old-shop", "old.localhost", "Accepted", ""),
		route("shop", "shop.localhost", "Accepted", ""),
	}}
	quick.Items[2].Summary.Redirect = true

	broken := view.View{Ready: true, Problems: []source.Problem{problem(0)}, Items: []view.Item{
		gateway("refused", "UnsupportedAddress", `spec.addresses asks for "nowhere" of type NamedAddress; use type IPAddress or none`,
			view.ListenerRow{Name: "http", Port: 8081, State: "UnsupportedAddress"}, view.ListenerRow{Name: "https", Port: 8443, State: "UnsupportedAddress"}),
		gateway("web", "Programmed", "", listener("http", 8080, "Programmed", ""),
			listener("https", 8443, "InvalidCertificateRef", "Secret default/wildcard-certificate does not exist")),
		route("hello", "", "Accepted", ""),
		route("shop", "shop.example.com", "BackendNotFound", "spec.rules[0].backendRefs[0]: Service default/shop-frontend does not exist: create it, or mend the name"),
	}}

	sets := view.View{Ready: true, Items: []view.Item{
		gateway("web", "Programmed", "", listener("http", 8080, "Programmed", "")),
		listenerSet("shop", "Programmed", "", listener("http", 8081, "Programmed", "")),
		listenerSet("stranger", "NotAllowed", "Gateway default/web allows no ListenerSets from namespace default"),
		route("basket", "", "Accepted", ""),
	}}
	sets.Items[3].Summary.Parents = []string{"ListenerSet default/shop/http"}

	// Edits that are refused, and routes with the same trouble.
	alike := view.View{Ready: true, Items: []view.Item{
		gateway("edited", "RefusedEdit", "old version in force since 10:42: line 7: spec.listeners: Required value", listener("http", 8080, "Programmed", "")),
		gateway("starting", "Pending", "Waiting for a proxy to connect; old version in force since 10:42: line 7: spec.listeners: Required value",
			listener("http", 8081, "Pending", "Waiting for a proxy to connect")),
		gateway("web", "Programmed", "", listener("http", 8082, "Programmed", "")),
	}}
	for i := range 2 {
		alike.Items[i].Summary.RefusedEdit = "line 7: spec.listeners: Required value"
	}
	for i := range 6 {
		alike.Items = append(alike.Items, route(fmt.Sprintf("shop-%d", i), "", "BackendNotFound", "spec.rules[0].backendRefs[0]: Service default/shop does not exist"))
	}
	alike.Items = append(alike.Items, route("blog", "", "Accepted", ""))
	for i := range 2 {
		alike.Problems = append(alike.Problems, source.Problem{File: fmt.Sprintf("manifests/%d.yaml", i), Line: 3, Reason: source.Syntax, Message: "not YAML: a tab", Stale: true,
			LastValid: []object.Key{{Kind: kind.Gateway, Name: object.Name{Namespace: "default", Name: "edited"}}}})
	}

	many := view.View{Ready: true, Items: []view.Item{gateway("web", "Programmed", "", listener("http", 8080, "Programmed", ""))}}
	for i := range 500 {
		state, message := "Accepted", ""
		if i%50 == 49 {
			state, message = "BackendNotFound", fmt.Sprintf("spec.rules[0].backendRefs[0]: Service default/missing-%d does not exist", i)
		}
		many.Items = append(many.Items, route(fmt.Sprintf("route-%03d", i), fmt.Sprintf("host-%d.example.com", i), state, message))
	}
	for i := range 12 {
		many.Problems = append(many.Problems, problem(i))
	}
	return map[string]view.View{
		"empty":    {Ready: true},
		"starting": {Why: "the proxy of Gateway default/web has no configuration yet", Items: []view.Item{gateway("web", "Pending", "Waiting for a proxy to connect", listener("http", 8080, "Pending", "Waiting for a proxy to connect"))}},
		"waiting": {Ready: true, Waiting: []string{"manifests"}, Problems: []source.Problem{
			{File: "manifests", Reason: source.Unread, Message: "can't be read: no such file or directory"},
		}},
		"quick":  quick,
		"broken": broken,
		"many":   many,
		"sets":   sets,
		"alike":  alike,
	}
}

func logLines() []LogLine {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return []LogLine{
		{at, slog.LevelInfo, "starting  version=dev  envoy=/usr/local/bin/envoy  envoy_version=1.40.0"},
		{at.Add(time.Second), slog.LevelInfo, "admin interface  address=127.0.0.1:19000"},
		{at.Add(2 * time.Second), slog.LevelInfo, "envoy started  gateway=default/web  pid=4711  version=1.40.0"},
		{at.Add(3 * time.Second), slog.LevelWarn, "input problem  problem=\"something that takes up more than one line because it is told in many words\"  reason=Invalid"},
	}
}

// TestFrame protects what people see: nothing that matters is hidden or cut,
// whatever the number of objects and the size of the window.
func TestFrame(t *testing.T) {
	for name, v := range views() {
		for _, size := range []struct{ width, height int }{{80, 24}, {120, 40}, {200, 50}} {
			for phase, suffix := range map[Phase]string{Serving: "", Stopping: "-stopping", Stopped: "-stopped"} {
				if phase != Serving && (name != "broken" || size.width != 80) {
					continue
				}
				golden := fmt.Sprintf("%s-%dx%d%s", name, size.width, size.height, suffix)
				t.Run(golden, func(t *testing.T) {
					s := Screen{Title: "manifests", Width: size.width, Height: size.height, Phase: phase, Log: logLines()}
					lines := s.Frame(v)
					for _, l := range lines {
						if visible(l) > size.width {
							t.Errorf("wider than the window: %q", l)
						}
					}
					if len(lines) > size.height {
						t.Errorf("%d lines in a window of %d", len(lines), size.height)
					}
					compare(t, golden, strings.Join(lines, "\n")+"\n")
				})
			}
		}
	}
}

// TestFrameAtAnySize protects against a panic, and against lines that wrap, while
// somebody drags the corner of a window; colour makes no line wider.
func TestFrameAtAnySize(t *testing.T) {
	for name, v := range views() {
		for _, width := range []int{1, 20, 33, 81} {
			for height := 1; height < 60; height++ {
				lines := Screen{Title: "manifests", Width: width, Height: height, Log: logLines(), Style: Style{color: true}}.Frame(v)
				if len(lines) > height {
					t.Errorf("%s at %dx%d: %d lines", name, width, height, len(lines))
				}
				for _, l := range lines {
					if visible(l) > width {
						t.Errorf("%s at %dx%d: too wide: %q", name, width, height, l)
					}
				}
			}
		}
	}
}

func compare(t *testing.T, name, have string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), have); diff != "" {
		t.Errorf("(-want +have; run with -update to take it over)\n%s", diff)
	}
}

// TestList protects those who want to see all of something: equal things have one line with a
// count, or one each, and a filter leaves what it names.
func TestList(t *testing.T) {
	for name, choice := range map[string]Choice{
		"alike-list": {}, "alike-each": {Each: true}, "alike-wrong": {Wrong: true}, "alike-filter": {Filter: "BLOG httproute"}, "alike-nothing": {Filter: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Screen{Title: "manifests", Width: 100, Height: 24, Log: logLines(), Choice: choice}
			compare(t, name, strings.Join(s.List(views()["alike"]), "\n")+"\n")
		})
	}
}

// TestDrivenAtAnySize is TestFrameAtAnySize with keys.
func TestDrivenAtAnySize(t *testing.T) {
	for name, v := range views() {
		for _, keys := range []string{"", "?", "G", "/e\rn", "pfdefault", "\r"} {
			for _, width := range []int{1, 20, 33, 81} {
				for height := 1; height < 60; height += 3 {
					b, screen := newBrowser(), Screen{Title: "manifests", Width: width, Height: height, Log: logLines(), Style: Style{color: true}}
					for _, r := range (&decoder{}).feed([]byte(keys)) {
						b.take(r)
						screen.driven(v, b)
					}
					lines := screen.driven(v, b)
					if len(lines) > height {
						t.Errorf("%s %q at %dx%d: %d lines", name, keys, width, height, len(lines))
					}
					for _, l := range lines {
						if visible(l) > width {
							t.Errorf("%s %q at %dx%d: too wide: %q", name, keys, width, height, l)
						}
					}
				}
			}
		}
	}
}

// TestListStays protects those who read while something happens: what is added above does not
// move what they look at.
func TestListStays(t *testing.T) {
	b := newBrowser()
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("  line %d", i))
	}
	b.list, b.top = true, 50
	b.window(lines, 10)
	if got := b.window(append([]string{"  new", "  newer"}, lines...), 10); got[0] != "  line 50" {
		t.Errorf("the window begins with %q", got[0])
	}
	if got := b.window(lines[:20], 10); got[0] != "  line 10" { // most of it is gone
		t.Errorf("the window begins with %q", got[0])
	}
}
