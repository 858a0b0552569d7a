package keyset

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Endpoints are where an issuer has people log in, as its configuration says. What it doesn't
// say, or what can't be used, is empty.
type Endpoints struct {
	Authorization string `json:"authorization,omitempty"` // URL to which people are led
	Token         string `json:"token,omitempty"`         // URL of which tokens are got for a code
	EndSession    string `json:"endSession,omitempty"`    // URL to which people are led who log out
	// Posted says that the client's secret goes into the body of a request to Token, and not into
	// its header Authorization.
	Posted bool `json:"posted,omitempty"`
}

// LogIn reports whether people can log in there.
func (e Endpoints) LogIn() bool { return e.Authorization != "" && e.Token != "" }

// String tells one from another.
func (e Endpoints) String() string {
	return fmt.Sprintf("%q %q %q %t", e.Authorization, e.Token, e.EndSession, e.Posted)
}

// Discovered reads an issuer's configuration, and returns where its keys are and where people log
// in (OpenID Connect Discovery 1.0, section 3); why says what is wrong with it.
func Discovered(issuer string, r Reach, text []byte) (uri string, e Endpoints, why string) {
	var in struct {
		Issuer        *string  `json:"issuer"`
		URI           string   `json:"jwks_uri"`
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		EndSession    string   `json:"end_session_endpoint"`
		Methods       []string `json:"token_endpoint_auth_methods_supported"`
	}
	switch err := json.Unmarshal(text, &in); {
	case err != nil:
		return "", e, "is no JSON object as issuers have it: " + Printable(err.Error())
	case in.Issuer == nil:
		return "", e, "names no issuer"
	case *in.Issuer != issuer: // "MUST be identical" (section 4.3)
		return "", e, fmt.Sprintf("is of issuer %s, and the policy's is %s: they must be the same to the letter", quote(Told(*in.Issuer)), quote(issuer))
	case in.URI == "":
		return "", e, "has no jwks_uri"
	}
	usable := func(text string) string {
		u, why := parseURL(text, r)
		if why != "" || !plainHost(u) || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return ""
		}
		return text
	}
	return in.URI, Endpoints{
		Authorization: usable(in.Authorization), Token: usable(in.Token), EndSession: usable(in.EndSession),
		// "If omitted, the default is client_secret_basic."
		Posted: !slices.Contains(in.Methods, "client_secret_basic") && slices.Contains(in.Methods, "client_secret_post"),
	}, ""
}

// plainHost reports whether the host of a URL, and its port, are such as Envoy reads them too: it refuses
// all that is on a host for the sake of one endpoint.
func plainHost(u *url.URL) bool {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	if strings.HasPrefix(u.Host, "[") {
		address, err := netip.ParseAddr(u.Hostname())
		return err == nil && address.Zone() == "" && !strings.HasSuffix(u.Host, ":")
	}
	return !strings.HasSuffix(u.Host, ":") && !strings.ContainsFunc(u.Hostname(), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.'
	})
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
