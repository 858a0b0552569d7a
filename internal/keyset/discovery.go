package keyset

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SetOf reads an issuer's configuration, and returns where its keys are (OpenID Connect
// Discovery 1.0, section 3); why says what is wrong with it.
func SetOf(issuer string, text []byte) (uri, why string) {
	var in struct {
		Issuer *string `json:"issuer"`
		URI    string  `json:"jwks_uri"`
	}
	switch err := json.Unmarshal(text, &in); {
	case err != nil:
		return "", "is no JSON object as issuers have it: " + Printable(err.Error())
	case in.Issuer == nil:
		return "", "names no issuer"
	case *in.Issuer != issuer: // "MUST be identical" (section 4.3)
		return "", fmt.Sprintf("is of issuer %s, and the policy's is %s: they must be the same to the letter", quote(Told(*in.Issuer)), quote(issuer))
	case in.URI == "":
		return "", "has no jwks_uri"
	}
	return in.URI, ""
}

// How long a set is used before it is fetched anew.
const (
	LeastAge = time.Minute
	UsualAge = 5 * time.Minute // where the server doesn't say
	MostAge  = time.Hour
)

// Age reads how long an answer may be used, from the values of its header Cache-Control (RFC
// 9111, section 5.2.2), within LeastAge and MostAge.
func Age(values []string) time.Duration {
	age, said := UsualAge, false
	for _, value := range values {
		for directive := range strings.SplitSeq(value, ",") {
			name, argument, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "no-store", "no-cache":
				return LeastAge
			case "max-age":
				seconds, ok := parseSeconds(argument)
				if !ok {
					continue
				}
				// Of two the shorter one counts, since one of them is a mistake.
				if a := max(LeastAge, min(seconds, MostAge)); !said || a < age {
					age, said = a, true
				}
			}
		}
	}
	return age
}

// parseSeconds reads a number of seconds; those that are too many for a number count as many.
func parseSeconds(text string) (time.Duration, bool) {
	text = strings.Trim(strings.TrimSpace(text), `"`)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return MostAge, true
	}
	return time.Duration(seconds) * time.Second, true
}
