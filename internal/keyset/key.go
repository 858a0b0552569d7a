package keyset

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Location is where the keys of an issuer are: one of the two is set.
type Location struct {
	URI    string // of the set itself
	Issuer string // whose configuration has the URI (OpenID Connect Discovery 1.0)
}

// maxURL is how long a URL may be, as the API has it for a URI.
const maxURL = 2048

// URL is what is fetched first.
func (l Location) URL() string {
	if l.URI != "" {
		return l.URI
	}
	// "Any terminating / MUST be removed before appending" (OpenID Connect Discovery 1.0,
	// section 4.1).
	return strings.TrimSuffix(l.Issuer, "/") + "/.well-known/openid-configuration"
}

func (l Location) String() string { return l.URL() }

// Check says what is wrong with a location, whoever fetches it; empty for nothing.
func (l Location) Check(r Reach) string {
	if l.Issuer != "" {
		// A URL "with no query or fragment components" (section 3 of the same).
		if u, err := url.Parse(l.Issuer); err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
			return "is no URL without query and fragment"
		}
	}
	_, why := parseURL(l.URL(), r)
	return why
}

// parseURL reads a URL that is to be fetched, and says what is wrong with it.
func parseURL(text string, r Reach) (u *url.URL, why string) {
	if len(text) > maxURL {
		return nil, fmt.Sprintf("has %d bytes; a URL has at most %d", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, "is no URL such as https://id.example.com"
	case u.Scheme != "https" && !(r == Host && u.Scheme == "http"):
		return nil, "is no https URL"
	case u.User != nil:
		return nil, "has a user or a password in it"
	case u.Fragment != "":
		return nil, "has a fragment (#)"
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		// Such a name is converted before it is resolved, and then has other dots.
		return nil, "has a host with letters beyond ASCII; write it as xn--"
	}
	return u, ""
}

// Key names a set that is wanted. It is fetched once, however many policies want it.
type Key struct {
	Location
	Reach Reach
}

func (k Key) String() string {
	if k.Reach == Public {
		return k.URL()
	}
	return k.URL() + " within " + string(k.Reach)
}

// Answer is what is known of a set. It is equal to another one that says the same.
type Answer struct {
	// Keys are the public keys, as JSON; empty where the set never could be fetched.
	Keys string `json:"keys,omitempty"`
	// Endpoints are the issuer's, where its configuration was asked for Keys.
	Endpoints Endpoints `json:"endpoints,omitzero"`
	// Problem says why the last attempt failed, and Since when Keys were fetched; empty if it
	// went well.
	Problem string    `json:"problem,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}
