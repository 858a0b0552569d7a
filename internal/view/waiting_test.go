package view

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// TestWaitingIsOneLine protects the log: what only follows from a cause doesn't bury it.
func TestWaitingIsOneLine(t *testing.T) {
	var out bytes.Buffer
	LogStates(slog.New(slog.NewTextHandler(&out, nil)), []StateChange{
		{Object: "Gateway default/web", Reason: "UnsupportedProtocol", Message: "the cause"},
		{Object: "HTTPRoute default/a", Reason: condition.ReasonWaiting, Message: "listener \"http\""},
		{Object: "HTTPRoute default/b", Reason: condition.ReasonWaiting, Message: "listener \"http\""},
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "the cause") || !strings.Contains(lines[1], "objects=2") {
		t.Errorf("got %q", lines)
	}
}
