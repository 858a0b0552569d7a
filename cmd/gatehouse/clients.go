package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
)

// clientFlags say how clients are served, by all listeners alike.
type clientFlags struct {
	http3         bool
	http10        bool
	proxyProtocol bool
	trustedHops   uint32
	mergeSlashes  bool
	escaped       string
	limits        []string // NAME=VALUE
}

func (f *clientFlags) define(fl *pflag.FlagSet) {
	fl.BoolVar(&f.http3, "http3", false, "serve HTTP/3 on HTTPS listeners that don't say otherwise")
	fl.BoolVar(&f.http10, "http10", false, "serve requests of HTTP/1.0, which are answered 426 otherwise")
	fl.BoolVar(&f.proxyProtocol, "proxy-protocol", false, "take clients' addresses from the PROXY protocol, and refuse connections without it")
	boundedVar(fl, &f.trustedHops, "trusted-hops", 0, 0, maxTrustedHops, "proxies in front of this one whose X-Forwarded headers are believed")
	fl.BoolVar(&f.mergeSlashes, "merge-slashes", true, "make one slash of several in paths, before a route is chosen")
	fl.StringVar(&f.escaped, "escaped-slashes", "reject", "what becomes of requests with %2F or %5C in their path: "+strings.Join(escapedNames(), ", "))
	fl.StringArrayVar(&f.limits, "limit", nil, "NAME=VALUE: what one client may take, of "+strings.Join(limitNames(), ", ")+"; repeatable")
}

// maxTrustedHops is beyond every chain of proxies that there is.
const maxTrustedHops = 100

func (f *clientFlags) options() (standalone.ClientOptions, error) {
	o := standalone.ClientOptions{HTTP3: f.http3, Client: ir.Client{ProxyProtocol: f.proxyProtocol, TrustedHops: f.trustedHops, HTTP10: f.http10}}
	if f.http3 && f.proxyProtocol {
		return o, usageError{errors.New("--http3 and --proxy-protocol can't be had together: there is no PROXY protocol over UDP")}
	}
	if err := oneOf("escaped-slashes", f.escaped, escapedNames()...); err != nil {
		return o, err
	}
	escaped := escapedSlashes[f.escaped]
	if escaped == ir.RedirectEscaped && !f.mergeSlashes {
		return o, usageError{errors.New("--escaped-slashes redirect needs --merge-slashes: a redirect to a path that begins with // leads to another host")}
	}
	o.Paths = ir.Paths{KeepDoubled: !f.mergeSlashes, Escaped: escaped}
	for _, text := range f.limits {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return o, usageError{fmt.Errorf("--limit: %q is not NAME=VALUE", text)}
		}
		set, ok := limits[name]
		if !ok {
			return o, usageError{fmt.Errorf("--limit: %q is none of %s", name, strings.Join(limitNames(), ", "))}
		}
		if err := set(&o.Limits, value); err != nil {
			return o, usageError{fmt.Errorf("--limit %s: %q is %w", name, value, err)}
		}
	}
	return o, nil
}

// escapedSlashes are the names that --escaped-slashes takes.
var escapedSlashes = map[string]ir.EscapedSlashes{
	"reject": ir.RejectEscaped, "redirect": ir.RedirectEscaped, "keep": ir.KeepEscaped,
}

func escapedNames() []string { return slices.Sorted(maps.Keys(escapedSlashes)) }

// limits are the names that --limit takes.
var limits = map[string]func(*ir.Limits, string) error{
	"headers-kib":         upTo(8192, func(l *ir.Limits) *uint32 { return &l.HeadersKiB }),
	"headers":             upTo(math.MaxInt32, func(l *ir.Limits) *uint32 { return &l.Headers }),
	"streams":             upTo(math.MaxInt32, func(l *ir.Limits) *uint32 { return &l.Streams }),
	"buffer-kib":          upTo(1<<20, func(l *ir.Limits) *uint32 { return &l.BufferKiB }),
	"headers-timeout":     lasting(func(l *ir.Limits) *time.Duration { return &l.HeadersTimeout }),
	"idle-timeout":        lasting(func(l *ir.Limits) *time.Duration { return &l.IdleTimeout }),
	"connection-duration": lasting(func(l *ir.Limits) *time.Duration { return &l.Duration }),
}

func limitNames() []string { return slices.Sorted(maps.Keys(limits)) }

func upTo(most uint64, field func(*ir.Limits) *uint32) func(*ir.Limits, string) error {
	return func(l *ir.Limits, value string) error {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("not a whole number from 1 to %d", most)
		}
		*field(l) = uint32(n)
		return nil
	}
}

func lasting(field func(*ir.Limits) *time.Duration) func(*ir.Limits, string) error {
	return func(l *ir.Limits, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Millisecond {
			return errors.New("not a duration such as 5s or 2m")
		}
		*field(l) = d
		return nil
	}
}
