package envoy

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

//go:embed errorpages.lua
var askedSource string

var askedScript = compact(askedSource)

// maxReplaced is how many bytes an error may have whose length is known, to be held back until there is a page. It is less than
// connections may hold.
const maxReplaced = 16 << 10

// pageTimeout is how long an error waits for its page.
const pageTimeout = 3 * time.Second

// askedPages asks backends for pages. A filter of Envoy's own would send the request anew, through all that guards the
// routes, and without its backend there would be nothing left of the first answer.
func askedPages(t *ir.Traffic) (message, error) {
	if t.ErrorPages == nil {
		return nil, nil //nolint:nilnil // there are no pages
	}
	var b strings.Builder
	fmt.Fprintf(&b, "local namespace, timeout, most, pages = %s, %d, %d, {}\n", luaText(errorPagesName), pageTimeout.Milliseconds(), maxReplaced)
	asks, seen := false, map[string]bool{}
	for i := range t.ErrorPages.Pages {
		page := &t.ErrorPages.Pages[i]
		for _, status := range page.Statuses {
			if seen[status] || seen[status[:1]+"xx"] || page.Own {
				continue
			}
			seen[status] = true
			if page.Backend.IsZero() {
				fmt.Fprintf(&b, "pages[%s] = false\n", luaText(status))
				continue
			}
			asks = true
			fmt.Fprintf(&b, "pages[%s] = %s\n", luaText(status), luaText(ClusterName(page.Backend)))
		}
	}
	if !asks {
		return nil, nil //nolint:nilnil // all are texts
	}
	return &luav3.Lua{DefaultSourceCode: inlined(b.String() + askedScript), ClearRouteCache: wrapperspb.Bool(false)}, nil
}
