package replicas

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// patient is a connection whose deadlines never pass.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetReadDeadline(time.Time) error { return nil }

// FuzzStream protects the leader from what a replica says, or something in its place:
// each Gateway that is spoken of has a name, what is remembered is what was said last, and
// what is said can be said on as it is.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		`{"gateway":"ns/a","state":{"connected":1,"synced":true,"listeners":{"l":"v"}}}` + "\n" + `{"complete":true}` + "\n" + `{}` + "\n" + `{"gateway":"ns/a"}`,
		`{"gateway":"ns/a","state":{"connected":-1,"rejected":[{"type":"listener","name":"l","version":"1","message":"m"}]}}` + "\n" + `{"gateway":"ns/b","state":{}}`,
		`{"gateway":"ns/a","state":{"rejected":[{"type":"nothing"}]}}`, `{"gateway":"a/b/c"}`, `{"gateway":"\u001b[31m"}`, "null\n[]", "\n\n{", `{"Gateway":"ns/a","STATE":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Count(text, []byte("\n")) + 1
		said := map[object.Name]xds.State{}
		calls := 0
		h := NewHandler(HandlerOptions{
			Leads: func() bool { return true },
			Said: func(_ string, gateway object.Name, state xds.State) {
				if _, ok := object.ParseName(gateway.String()); !ok {
					t.Fatalf("a Gateway %q", gateway)
				}
				calls++
				said[gateway] = state
			},
		})
		who := &replica{gateways: map[object.Name]bool{}}
		err := h.read(t.Context(), http.NewResponseController(patient{}), bytes.NewReader(text), "other", who)
		if err != nil {
			messagetest.Error(t, err, 3*len(text)+300)
		}
		if calls > 2*lines {
			t.Fatalf("%d lines say %d things", lines, calls)
		}
		for gateway := range who.gateways {
			if _, ok := said[gateway]; !ok {
				t.Fatalf("Gateway %s is remembered, and nothing was said of it", gateway)
			}
		}
		for gateway, state := range said {
			if !who.gateways[gateway] {
				if !cmp.Equal(state, xds.State{}) {
					t.Fatalf("Gateway %s is forgotten, and the last that was said is %+v", gateway, state)
				}
				continue
			}
			again, err := json.Marshal(message{Gateway: gateway.String(), State: &state})
			if err != nil {
				t.Fatal(err)
			}
			var m message
			if err := json.Unmarshal(again, &m); err != nil || !cmp.Equal(*m.State, state, cmpopts.EquateEmpty()) {
				t.Fatalf("said on, it is another thing: %s (%v)", again, err)
			}
			for _, r := range state.Rejected {
				if strings.TrimSpace(r.Type.String()) == "" {
					t.Fatalf("a resource of no type: %+v", r)
				}
			}
		}
	})
}
