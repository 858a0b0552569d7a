package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// The bounds of an answer, beside its time.
const (
	maxHeader    = 64 << 10
	maxRedirects = 3
	maxAddresses = 4 // of a name that are tried
)

// fetched is what an attempt has brought.
type fetched struct {
	Keys      string           // public ones, as JSON
	Endpoints keyset.Endpoints `json:",omitzero"`
}

// fetch fetches a set once. It returns what came and how long that is good for, or why nothing did.
func (f *Fetcher) fetch(ctx context.Context, k keyset.Key) (got fetched, age time.Duration, why string) {
	ctx, cancel := context.WithTimeout(ctx, f.pace.whole)
	defer cancel()
	from := k.URL()
	if k.Issuer != "" {
		text, _, why := f.get(ctx, k, from)
		if why != "" {
			return fetched{}, 0, keyset.Told(from) + " " + why
		}
		uri, endpoints, why := keyset.Discovered(k.Issuer, k.Reach, text)
		if why != "" {
			return fetched{}, 0, keyset.Told(from) + " " + why
		}
		if u, err := url.Parse(from); err == nil && u.Scheme == "https" && isPlain(uri) {
			return fetched{}, 0, keyset.Told(from) + " has the jwks_uri " + keyset.Told(uri) + ", which is no https URL"
		}
		from, got.Endpoints = uri, endpoints
	}
	text, age, why := f.get(ctx, k, from)
	if why != "" {
		return fetched{}, 0, keyset.Told(from) + " " + why
	}
	// Keys that can't be used are left out: "implementations SHOULD ignore" them (RFC 7517,
	// section 5), and whoever has the policy can't change the set.
	keys, problems := keyset.Parse(text)
	if got.Keys = keys; keys == "" {
		return fetched{}, 0, keyset.Told(from) + " " + keyset.Printable(problems[0])
	}
	return got, age, ""
}

func isPlain(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http"
}

// get reads what a URL has, and how long that is good for; why says what came instead.
func (f *Fetcher) get(ctx context.Context, k keyset.Key, from string) (text []byte, age time.Duration, why string) {
	at := ""
	for redirects := 0; ; redirects++ {
		u, why := k.Reach.CheckURL(from)
		if why != "" {
			return nil, 0, at + why
		}
		text, age, next, why := f.once(ctx, k, u)
		switch {
		case why != "":
			return nil, 0, at + why
		case next == nil:
			return text, age, ""
		}
		if redirects == maxRedirects {
			return nil, 0, fmt.Sprintf("redirects more than %d times", maxRedirects)
		}
		if u.Scheme == "https" && next.Scheme != "https" {
			return nil, 0, "redirects to " + keyset.Told(next.String()) + ", which is no https URL"
		}
		from = next.String()
		at = "redirects to " + keyset.Told(next.String()) + ", which "
	}
}

// once asks one URL. It returns where that redirects to; nil for nowhere.
func (f *Fetcher) once(ctx context.Context, k keyset.Key, u *url.URL) (text []byte, age time.Duration, next *url.URL, why string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, 0, nil, "is no URL that can be asked for"
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	req.Header.Set("User-Agent", "gatehouse")
	transport := f.transport(k)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req) // which follows no redirect, keeps no cookie
	if err != nil {
		return nil, 0, nil, "can't be reached: " + reason(ctx, err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next, err := res.Location()
		if err != nil {
			return nil, 0, nil, fmt.Sprintf("answered %d without a Location that can be read", res.StatusCode)
		}
		return nil, 0, next, ""
	default:
		return nil, 0, nil, "answered " + came(res)
	}
	text, err = io.ReadAll(io.LimitReader(res.Body, keyset.MaxBytes+1))
	switch {
	case err != nil:
		return nil, 0, nil, "answered " + came(res) + ", and then: " + reason(ctx, err)
	case len(text) > keyset.MaxBytes:
		return nil, 0, nil, fmt.Sprintf("answered %s with more than %d bytes, which are the most that are read", came(res), keyset.MaxBytes)
	case !looksLikeJSON(text):
		return nil, 0, nil, "answered " + came(res) + ", and no JSON object"
	}
	return text, keyset.Age(res.Header.Values("Cache-Control")), nil, ""
}

// came is what came, for a message: never what is in it.
func came(res *http.Response) string {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || kind == "" {
		kind = "without a content type"
	}
	return fmt.Sprintf("%d (%s)", res.StatusCode, keyset.Printable(kind))
}

// looksLikeJSON reports whether a text begins as an object does.
func looksLikeJSON(text []byte) bool {
	for _, b := range text {
		switch b {
		case ' ', '\t', '\r', '\n':
		default:
			return b == '{'
		}
	}
	return false
}

// transport is for one request: no connection is kept, and none of another key is used.
func (f *Fetcher) transport(k keyset.Key) *http.Transport {
	return &http.Transport{
		Proxy: nil, // whoever sets one in the environment means other programs
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.connect(ctx, k, network, address)
		},
		TLSClientConfig:        &tls.Config{RootCAs: f.opts.Roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// reason is what an error says, without the addresses around it, and without what came.
func reason(ctx context.Context, err error) string {
	if refused, ok := errors.AsType[refusal](err); ok {
		return string(refused)
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "there is no such host"
		}
		return "its name can't be resolved"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is of no authority that is trusted"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "its certificate is not valid at this time" // the error has the time, and would be another one each time
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for other hosts"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return keyset.Printable(op.Err.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(err.Error(), "tls: ") {
		return keyset.Printable(err.Error())
	}
	return "what it answers is no HTTP" // such an error has the line that it can't read
}
