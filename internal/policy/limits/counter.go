package limits

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// counters are those without a part that varies.
var counters = map[string]ir.CounterKind{
	"client.address": ir.ClientAddress,
	"auth.client":    ir.ClientName,
	"request.host":   ir.RequestHost,
	"request.method": ir.RequestMethod,
	"request.path":   ir.RequestPath,
}

var (
	headerCounter = regexp.MustCompile(`^request\.headers\[(?:'([^']*)'|"([^"]*)")\]$`)
	countedHeader = regexp.MustCompile(`^[a-z0-9][-a-z0-9_.]*$`)
	claimCounter  = regexp.MustCompile(`^auth\.claims\.(.*)$`)
	// countedClaim is what Envoy can be asked for: it tells the parts of a path apart by
	// colons.
	countedClaim = regexp.MustCompile(`^[-A-Za-z0-9_./]+$`)
)

// counter reads what requests are counted by, or says why it can't be.
func counter(text string) (c ir.Counter, why string) {
	if of, ok := counters[text]; ok {
		return ir.Counter{Of: of}, ""
	}
	if m := headerCounter.FindStringSubmatch(text); m != nil {
		name := strings.ToLower(m[1] + m[2])
		if name == "host" { // which a client may spell as it likes
			return c, fmt.Sprintf("is %q; use request.host", text)
		}
		if !countedHeader.MatchString(name) {
			return c, fmt.Sprintf("is %q, whose header has a name that can't be counted by; use one of letters, digits, and - _ .", text)
		}
		return ir.Counter{Of: ir.RequestHeader, Header: name}, ""
	}
	if m := claimCounter.FindStringSubmatch(text); m != nil {
		path := auth.ClaimPath(m[1])
		if !countedClaim.MatchString(m[1]) || slices.Contains(path, "") {
			return c, fmt.Sprintf("is %q, whose claim has a name that can't be counted by; use one of letters, digits, and - _ /, with dots between a claim and those inside of it", text)
		}
		return ir.Counter{Of: ir.TokenClaim, Claim: path}, ""
	}
	return c, condition.UnknownCounter(text)
}
