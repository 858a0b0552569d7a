package writer_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

const controllerName = "gatehouse.dev/controller"

// TestWriter says what the writer does to a real API server.
func TestWriter(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Experimental})
	t.Run("at once", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *bench){
			"foreign entries and conditions":    testForeign,
			"nothing to write":                  testNothing,
			"a cache that lags":                 testLag,
			"set while it is compared":          testSetMeanwhile,
			"transition times":                  testTransitions,
			"a burst":                           testBurst,
			"many objects":                      testMany,
			"a storm of conflicts":              testStorm,
			"deleted and made again":            testDeleted,
			"an older generation":               testGeneration,
			"every kind":                        testKinds,
			"events of what a proxy refuses":    testEvents,
			"events of certificates":            testCertificateEvents,
			"events of what needs a person":     testAttentionEvents,
			"an event too early for another":    testLaterEvent,
			"what can't be written, for a time": testErrors,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, start(t, server))
			})
		}
	})
	t.Run("what is left behind", func(t *testing.T) { testLeftBehind(t, begin(t, server)) })
	t.Run("fields that are pruned", func(t *testing.T) { testPruned(t, start(t, server)) })
	t.Run("an API server that goes and comes", func(t *testing.T) {
		testOutage(t, start(t, server), server)
	})
}

// TestStops says that a writer that has ended leaves nothing behind.
func TestStops(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := writer.New(writer.Options{Live: func(object.Key) client.Object { return nil }, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	w.Set(object.Key{Kind: kind.Gateway, Name: object.Name{Name: "g"}}, gatewayStatus(1, 0))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.Set(object.Key{Kind: kind.Gateway, Name: object.Name{Name: "g"}}, nil)
}

// What is so already is not written: not when it is set again, nor by another writer
// after a restart, nor when the object changes otherwise.
func testNothing(t *testing.T, b *bench) {
	g, r := b.gateway(t, "g"), b.route(t, "r")
	set := func() {
		b.Set(g, gatewayStatus(1, 1))
		b.Set(r, routeStatus(1, "g"))
	}
	set()
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 2 {
		t.Fatalf("%d writes at first", n)
	}
	set()
	set()
	second := writer.New(writer.Options{
		Client: b.Client, Live: b.live, ControllerName: controllerName, Log: slog.New(slog.DiscardHandler),
	})
	versions := []string{b.stored(t, g).GetResourceVersion(), b.stored(t, r).GetResourceVersion()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = second.Run(ctx)
	}()
	second.Set(g, gatewayStatus(1, 1))
	second.Set(r, routeStatus(1, "g"))
	b.settled(t)
	cancel()
	<-done
	if d := cmp.Diff(versions, []string{b.stored(t, g).GetResourceVersion(), b.stored(t, r).GetResourceVersion()}); d != "" {
		t.Errorf("something was written:\n%s", d)
	}
	live := b.stored(t, g)
	live.SetLabels(map[string]string{"a": "b"})
	if err := b.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 2 {
		t.Errorf("%d writes in the end", n)
	}
}

// A condition's time is that of its last change of status.
func testTransitions(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	at := func(kind string) metav1.Time {
		c, _ := condition.Find(b.status(t, k).(gwv1.GatewayStatus).Conditions, kind)
		return c.LastTransitionTime
	}
	b.Set(k, gatewayStatus(1, 0))
	b.settled(t)
	if age := time.Since(at("Accepted").Time); age > time.Minute || age < 0 {
		t.Errorf("the first transition was %v ago", age)
	}
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	live := b.stored(t, k).(*gwv1.Gateway)
	for i := range live.Status.Conditions {
		live.Status.Conditions[i].LastTransitionTime = long
	}
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	next := gatewayStatus(1, 0)
	next.Conditions[0].Message = "in other words"
	next.Conditions[1] = observed(1, condition.GatewayPending("for a proxy"))[0]
	b.Set(k, next)
	b.settled(t)
	if got := at("Accepted"); !got.Equal(&long) {
		t.Errorf("a new message is a transition: %v", got)
	}
	if got := at("Programmed"); got.Equal(&long) {
		t.Errorf("a new status is none")
	}
}

// A status that was computed from an older spec is not written.
func testGeneration(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	live := b.stored(t, k).(*gwv1.Gateway)
	live.Spec.Listeners[0].Port = 81
	if err := b.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache has it", func() bool { return b.live(k).GetGeneration() == 2 })
	b.Set(k, gatewayStatus(1, 0))
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 0 {
		t.Fatalf("%d writes of an old status", n)
	}
	b.Set(k, gatewayStatus(2, 0))
	eventually(t, "the new one is written", func() bool { return len(b.status(t, k).(gwv1.GatewayStatus).Listeners) == 1 })
}

// What a proxy has come to refuse is an event of the object, once.
func testEvents(t *testing.T, b *bench) {
	k := b.route(t, "r")
	refused := routeStatus(1, "g")
	refused.Parents[0].Conditions = append(refused.Parents[0].Conditions,
		observed(1, condition.RouteNotProgrammed([]condition.Refusal{{Subject: "host \"a\"", Envoy: strings.Repeat("bad ä", 400)}}, nil))...)
	b.Set(k, routeStatus(1, "g"))
	b.settled(t)
	b.Set(k, refused)
	b.settled(t)
	more := refused.DeepCopy()
	more.Parents[0].Conditions[0].Message = "in other words"
	b.Set(k, more)
	b.settled(t)
	select {
	case e := <-b.events.Events:
		if !strings.HasPrefix(e, `Warning RejectedByProxy Envoy refuses host "a", and`) || len(e) > 1100 {
			t.Errorf("%d bytes: %s", len(e), e)
		}
	default:
		t.Fatal("no event")
	}
	if len(b.events.Events) > 0 {
		t.Errorf("and another: %s", <-b.events.Events)
	}
}

// What a person must do something about is an event, once; what only waits is none.
func testAttentionEvents(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	for attached := range int32(3) {
		s := gatewayStatus(1, attached)
		s.Conditions = observed(1,
			metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "InvalidParameters", Message: "GatewayParameters a/b does not exist; create it"},
			metav1.Condition{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "Pending", Message: "Waiting for a proxy to connect"})
		b.Set(k, s)
		b.settled(t)
	}
	want := "Warning InvalidParameters GatewayParameters a/b does not exist; create it"
	select {
	case e := <-b.events.Events:
		if e != want {
			t.Errorf("the event is %q, want %q", e, want)
		}
	default:
		t.Errorf("no event, want %q", want)
	}
	if len(b.events.Events) > 0 {
		t.Errorf("and another: %s", <-b.events.Events)
	}
}

// Of what comes up right after something else there is an event too, only later: nobody
// would be told otherwise.
func testLaterEvent(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	for _, why := range []string{"first", "second"} {
		s := gatewayStatus(1, 0)
		s.Conditions = observed(1, metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "InvalidParameters", Message: why})
		b.Set(k, s)
		b.settled(t)
	}
	for _, want := range []string{"Warning InvalidParameters first", "Warning InvalidParameters second"} {
		select {
		case e := <-b.events.Events:
			if e != want {
				t.Errorf("the event is %q, want %q", e, want)
			}
		case <-time.After(time.Minute):
			t.Errorf("no event, want %q", want)
		}
	}
}

// A certificate that expires soon is an event of the Gateway, once, however often
// something else of the status changes.
func testCertificateEvents(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	resolved := condition.Noted(condition.ListenerResolvedRefs(), condition.NoteCertificateExpires("a/b", time.Unix(0, 0)))
	for attached := range int32(3) {
		s := gatewayStatus(1, attached)
		s.Listeners[0].Conditions = append(s.Listeners[0].Conditions, observed(1, resolved)...)
		b.Set(k, s)
		b.settled(t)
	}
	for _, want := range []string{"Warning CertificateExpires All references are resolved; the certificate in Secret a/b expires at 1970-01-01T00:00:00Z; renew it", ""} {
		select {
		case e := <-b.events.Events:
			if e != want {
				t.Errorf("the event is %q, want %q", e, want)
			}
		default:
			if want != "" {
				t.Errorf("no event, want %q", want)
			}
		}
	}
}

// An error is logged once, tried again, and holds up nobody else.
func testErrors(t *testing.T, b *bench) {
	bad, good := b.route(t, "bad"), b.route(t, "good")
	b.requests.answer(func(q *http.Request) *http.Response {
		if !strings.Contains(q.URL.Path, "/bad/") {
			return nil
		}
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("not for you")), Request: q}
	})
	b.Set(bad, routeStatus(1, "g"))
	b.Set(good, routeStatus(1, "g"))
	eventually(t, "the good one is written", func() bool { return len(b.status(t, good).(gwv1.RouteStatus).Parents) == 1 })
	eventually(t, "the bad one is tried again", func() bool { return b.requests.count("/bad/") >= 3 })
	if n := strings.Count(b.log.String(), "can't be written"); n != 1 {
		t.Errorf("%d lines: %s", n, b.log.String())
	}
	b.requests.answer(nil)
	eventually(t, "it is written in the end", func() bool { return len(b.status(t, bad).(gwv1.RouteStatus).Parents) == 1 })
	eventually(t, "it is told", func() bool { return strings.Contains(b.log.String(), "could be written again") })
	families, err := b.registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	counts := map[string]float64{}
	for _, m := range families[0].Metric {
		counts[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.Counter.GetValue()
	}
	if counts["HTTPRoute ok"] != 2 || counts["HTTPRoute error"] < 3 {
		t.Errorf("%v", counts)
	}
}

// While there is no API server nothing is lost.
func testOutage(t *testing.T, b *bench, server *apiserver.Server) {
	k := b.gateway(t, "g")
	server.Kill()
	for i := range int32(10) {
		b.Set(k, gatewayStatus(1, i))
	}
	eventually(t, "it is tried", func() bool { return b.requests.count("") >= 2 })
	server.Resume()
	eventually(t, "the last one is written", func() bool {
		s := b.status(t, k).(gwv1.GatewayStatus)
		return len(s.Listeners) == 1 && s.Listeners[0].AttachedRoutes == 9
	})
}
