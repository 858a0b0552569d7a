package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// TestPrintStatus protects scripts: off a terminal a row is a line, with its
// message in full.
func TestPrintStatus(t *testing.T) {
	for name, wide := range map[string]Wide{"status": false, "status-wide": true} {
		v := views()["broken"]
		v.Proxies = []view.Proxy{{Gateway: "default/web", Phase: "running", Live: true, PID: 4711, Since: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}}
		var out bytes.Buffer
		PrintStatus(&out, v, wide)
		compare(t, name, out.String())
	}
}

// TestPrintNotes protects those who don't ask for more than the table: a certificate that
// expires soon is in it, although its listener is well.
func TestPrintNotes(t *testing.T) {
	v := views()["broken"]
	for i := range v.Items {
		for j := range v.Items[i].Summary.Listeners {
			v.Items[i].Summary.Listeners[j].Notes = "expires soon"
		}
	}
	var out bytes.Buffer
	PrintStatus(&out, v, false)
	for line := range strings.SplitSeq(out.String(), "\n") {
		if fine := strings.Contains(line, "127.0.0.1:8080"); fine != strings.Contains(line, "Programmed             expires soon") {
			t.Errorf("this line: %s", line)
		}
	}
	if text := strings.Join(Screen{Title: "x", Width: 200, Height: 50}.Frame(v), "\n"); !strings.Contains(text, "expires soon") {
		t.Errorf("the live screen:\n%s", text)
	}
}

// TestPrintTroubledEnvoy protects whoever looks for why nothing answers: an Envoy that
// doesn't work is shown without being asked for.
func TestPrintTroubledEnvoy(t *testing.T) {
	v := views()["quick"]
	v.Proxies = []view.Proxy{
		{Gateway: "default/still", Phase: "stalled", PID: 4711}, {Gateway: "default/web", Phase: "running", Live: true, PID: 4712},
	}
	var out bytes.Buffer
	PrintStatus(&out, v, false)
	if text := out.String(); !strings.Contains(text, "default/still  stalled  4711") || strings.Contains(text, "4712") {
		t.Errorf("it says\n%s", text)
	}
}

// TestTry protects those who copy a command: it reaches the route, and a shell
// takes it, also when it is broken over lines.
func TestTry(t *testing.T) {
	v := views()["quick"]
	v.Items[0].Summary.Listeners = []view.ListenerRow{
		{Name: "https", Protocol: "HTTPS", Port: 8443, Addrs: []string{"::"}, Hostname: "*.example.com", State: "Programmed", OK: true},
	}
	v.Items[3].Summary.Path = "/it's"
	want := []string{
		"curl -k --connect-to any.example.com:8443:[::1]:8443 https://any.example.com:8443/",
		"curl -i -k --connect-to old.localhost:8443:[::1]:8443 https://old.localhost:8443/",
		`curl -k --connect-to shop.localhost:8443:[::1]:8443 https://shop.localhost:8443'/it'\''s'`,
	}
	have := Try(v, 5)
	if strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("have\n%s", strings.Join(have, "\n"))
	}
	v.Items[1].Kind, v.Items[1].Summary.Call = "GRPCRoute", "shop.v1.Orders/List"
	v.Items[2].Kind, v.Items[2].Summary.Call = "GRPCRoute", "shop.v1.Cart/Add"
	v.Items[3].Kind = "GRPCRoute" // of which no call is known
	want = []string{
		"grpcurl -insecure -proto FILE -authority any.example.com [::1]:8443 shop.v1.Orders/List",
		"grpcurl -insecure -proto FILE -authority old.localhost [::1]:8443 shop.v1.Cart/Add",
	}
	if calls := Try(v, 5); strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("have\n%s", strings.Join(calls, "\n"))
	}
	lines := commandLines(have[0], 60)
	if joined := strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")), " "); joined != have[0] {
		t.Errorf("broken over lines it is %q", joined)
	}
	if got := Try(v, 1); len(got) != 1 {
		t.Errorf("%d commands, want 1", len(got))
	}
}

// TestPrintListenerSets protects the table of ListenerSets, and the commands for
// routes on them.
func TestPrintListenerSets(t *testing.T) {
	v := views()["sets"]
	var out bytes.Buffer
	PrintStatus(&out, v, false)
	compare(t, "status-sets", out.String())
	want := "curl http://127.0.0.1:8081/"
	if have := strings.Join(Try(v, 5), "\n"); have != want {
		t.Errorf("have\n%s", have)
	}
}

// TestNeeded protects the count in the header: an object counts once, whatever is
// said of it, and what only waits does not.
func TestNeeded(t *testing.T) {
	v := views()["broken"]
	if got := Needed(v).String(); got != "4 objects need attention" {
		t.Error(got)
	}
	v.Problems = append(v.Problems, source.Problem{Key: object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: "shop"}}}, source.Problem{File: "a"}, source.Problem{File: "a"})
	if got := Needed(v).String(); got != "4 objects and 1 file need attention" {
		t.Error(got)
	}
	if got := Needed(views()["starting"]).String(); got != "" {
		t.Error(got)
	}
	if got := Needed(view.View{Problems: []source.Problem{{File: "a"}}}).String(); got != "1 file needs attention" {
		t.Error(got)
	}
}

// TestText protects the screen from what stands in files.
func TestText(t *testing.T) {
	if got := Clean("a\x1b[31mb\nc\t\u202ed\a"); got != "a[31mb c d" {
		t.Errorf("%q", got)
	}
	if got := clip("\x1b[31mabcdef\x1b[0m", 4); got != "\x1b[31mabc…\x1b[0m" {
		t.Errorf("%q", got)
	}
	got := wrap("one two three "+strings.Repeat("x", 25), 12, 2)
	want := []string{"one two", "  three", "  xxxxxxxxxx", "  xxxxxxxxxx", "  xxxxx"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}

// TestWide holds what a wide table has besides: ages, parameters and how many of the
// ListenerSets a Gateway has accepted.
func TestWide(t *testing.T) {
	v := views()["sets"]
	hours := metav1.NewTime(time.Now().Add(-5 * time.Hour))
	for i := range v.Items {
		v.Items[i].Metadata.CreationTimestamp = hours
		if it := &v.Items[i]; it.Kind == "Gateway" {
			it.Summary.Parameters, it.Summary.AttachedSets = "small", 1
		}
	}
	var out bytes.Buffer
	PrintStatus(&out, v, true)
	text := out.String()
	for _, want := range []string{"PARAMETERS", "LISTENERSETS", "PROTOCOL", " 5h", " small ", "1 of "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestPrintRemotes protects whoever edits what a config server publishes: it is told whether what is
// served is what the server has, and how old it is else.
func TestPrintRemotes(t *testing.T) {
	v := views()["quick"]
	v.Remotes = []source.Remote{
		{Address: "a.test:18443", Current: true, AsOf: time.Now(), Objects: 8},
		{Address: "b.test:18443", AsOf: time.Now().Add(-3 * time.Hour), Objects: 2, Error: "connection refused"},
		{Address: "c.test:18443"},
	}
	var out bytes.Buffer
	PrintStatus(&out, v, false)
	_, table, _ := strings.Cut(out.String(), "FROM")
	want := "          OBJECTS  AGE  STATE\na.test:18443  8             Current\nb.test:18443  2        3h   Kept\nc.test:18443  0             Unknown\n"
	if table != want {
		t.Errorf("it says\n%s\nwant\n%s", table, want)
	}
}
