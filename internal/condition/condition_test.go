package condition

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
)

// TestLongListsAreCut protects the reader and the API server's limit on messages.
func TestLongListsAreCut(t *testing.T) {
	names := make([]string, 64)
	problems := make([]metav1.Condition, 1000)
	for i := range names {
		names[i] = strings.Repeat("n", 63)
	}
	for i := range problems {
		problems[i] = BackendNotFound(strings.Repeat("f", i), Missing{Name: strings.Repeat("s", 500)})
	}
	for _, c := range []metav1.Condition{GatewaySomeListenersNotValid(names), RouteNotResolved(problems)} {
		if n := len(c.Message); n > 8192 {
			t.Errorf("%s: a message of %d bytes", c.Type, n)
		}
		if !strings.Contains(c.Message, " more") {
			t.Errorf("%s: the message hides that it is cut: %s", c.Type, c.Message)
		}
	}
}

// TestMessagesCanBePrinted protects terminals and statuses from names that the schemas let
// through: those of references may be any text.
func TestMessagesCanBePrinted(t *testing.T) {
	for _, name := range []string{"default/\n", "\x1b[31m", "\u0085", strings.Repeat("é", maxMessage)} {
		c := BackendNotFound("spec.rules[0].backendRefs[0]", Missing{Kind: "Service", Name: name})
		messagetest.Check(t, c.Message, maxMessage)
		messagetest.Check(t, Noted(c, name).Message, maxMessage)
	}
}

// TestNotResolvedSaysEachThingOnce protects routes with many references to one
// missing object.
func TestNotResolvedSaysEachThingOnce(t *testing.T) {
	same := BackendNotFound("spec.rules[0].backendRefs[0]", Missing{Kind: "Service", Namespace: "default", Name: "web"})
	c := RouteNotResolved([]metav1.Condition{same, same, BackendKind("x", "Bucket", "b")})
	if c.Reason != same.Reason || c.Status != metav1.ConditionFalse {
		t.Errorf("got %s=%s %s, want the first problem's reason", c.Type, c.Status, c.Reason)
	}
	if n := strings.Count(c.Message, "default/web"); n != 1 {
		t.Errorf("said %d times: %s", n, c.Message)
	}
}

// TestUnprogrammedReasons protects what the conformance suite expects of
// conflicted listeners.
func TestUnprogrammedReasons(t *testing.T) {
	accepted, _ := ListenerHostnameConflict(80, "", []string{"a"})
	for _, test := range []struct {
		cause metav1.Condition
		want  string
	}{
		{accepted, "HostnameConflict"},
		{ListenerUnsupportedProtocol("TCP", "HTTP", ""), "Invalid"},
	} {
		if got := ListenerNotProgrammed(test.cause); got.Reason != test.want || got.Message != test.cause.Message {
			t.Errorf("%s: got %s %q", test.cause.Reason, got.Reason, got.Message)
		}
	}
}
