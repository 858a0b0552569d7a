//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// sharePoints is the tolerance of shares, in percentage points: over 500
// requests two standard deviations and more, and a miss is tried again.
const sharePoints = 5

// check compares one outcome with what is expected; the error lists every
// difference.
func (e *expectation) check(o *outcome) error {
	var d differences
	if e.Closed != o.closed {
		d.add("closed without an answer is %t, want %t", o.closed, e.Closed)
	}
	if e.None != o.silent {
		d.add("no answer is %t, want %t", o.silent, e.None)
	}
	if e.Status != nil && !slices.Contains(e.Status, o.status) {
		d.add("status is %d, want %d", o.status, e.Status)
	}
	d.want("code", e.Code, o.code)
	d.want("backend", e.Backend, o.answer.Name)
	d.want("method seen by the backend", e.Method, o.answer.Method)
	d.want("host seen by the backend", e.Host, o.answer.Host)
	d.want("path seen by the backend", e.Path, o.answer.Path)
	d.want("protocol seen by the backend", e.Proto, o.answer.Proto)
	d.want("body seen by the backend", e.Body, o.answer.Body)
	if e.Query != nil {
		d.same("query seen by the backend", *e.Query, o.answer.Query)
	}
	if e.Reply != nil && !o.closed && !o.silent {
		d.same("reply", *e.Reply, o.reply)
	}
	if e.TLS != nil {
		e.TLS.check(o.answer.TLS, &d)
	}
	for name, want := range e.Seen {
		d.header("request header seen by the backend", name, want, o.answer.Headers)
	}
	for name, want := range e.Headers {
		d.header("response header", name, want, o.headers)
	}
	if e.Redirect != nil {
		e.Redirect.check(o.headers.Get("Location"), &d)
	}
	if e.Certificate != "" && !slices.Contains(o.certificate, e.Certificate) {
		d.add("certificate for %v, want one for %s", o.certificate, e.Certificate)
	}
	if limit := time.Duration(e.Within); limit > 0 && o.took > limit {
		d.add("took %s, want at most %s", o.took, limit)
	}
	if limit := time.Duration(e.AtLeast); o.took < limit {
		d.add("took %s, want at least %s", o.took, limit)
	}
	if err := d.err(); err != nil {
		if o.status == 0 {
			return err
		}
		return fmt.Errorf("%w\nanswer: %d %v\n%s", err, o.status, o.headers, clipped(o.body))
	}
	return nil
}

func (b *backendTLS) check(got *echo.TLSInfo, d *differences) {
	if got == nil {
		d.add("the backend saw no TLS")
		return
	}
	if b.SNI != nil {
		d.same("server name seen by the backend", *b.SNI, got.ServerName)
	}
	if b.ALPN != nil {
		d.same("ALPN seen by the backend", *b.ALPN, got.ALPN)
	}
	if b.Peer != nil {
		d.same("client certificate seen by the backend", *b.Peer, strings.Join(got.Peers, " "))
	}
}

func (r *redirect) check(location string, d *differences) {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		d.add("Location %q is no URL", location)
		return
	}
	d.want("scheme of Location", r.Scheme, u.Scheme)
	d.want("host of Location", r.Host, u.Hostname())
	d.want("path of Location", r.Path, u.EscapedPath())
	if r.Port != nil && !slices.Contains(r.Port, u.Port()) {
		d.add("port of Location is %q, want one of %q", u.Port(), r.Port)
	}
	if r.Query != nil {
		d.same("query of Location", *r.Query, u.RawQuery)
	}
}

// checkShare compares who answered how often with percentages of all.
func checkShare(want map[string]int, got map[string]int) error {
	total := 0
	for _, n := range got {
		total += n
	}
	var d differences
	for who, n := range got {
		if _, expected := want[who]; !expected {
			d.add("%d of %d answers from %s, want none", n, total, who)
		}
	}
	for who, percent := range want {
		share := 100 * float64(got[who]) / float64(max(1, total))
		exact := percent == 0 || percent == 100
		if off := share - float64(percent); exact && off != 0 || off > sharePoints || off < -sharePoints {
			d.add("%.1f %% of the answers from %s, want %d %%", share, who, percent)
		}
	}
	return d.err()
}

// matches compares a count with the amount wanted of sent requests.
func (a amount) matches(got, sent int) error {
	if !a.share || a.percent == 0 || a.percent == 100 {
		want := a.exact
		if a.share {
			want = sent * a.percent / 100
		}
		if got != want {
			return fmt.Errorf("%d requests arrived, want %d", got, want)
		}
		return nil
	}
	share := 100 * float64(got) / float64(sent)
	if off := share - float64(a.percent); off > sharePoints || off < -sharePoints {
		return fmt.Errorf("%.1f %% of %d requests arrived, want %d %%", share, sent, a.percent)
	}
	return nil
}

// differences collects what is not as it should be.
type differences []string

func (d *differences) add(format string, args ...any) {
	*d = append(*d, fmt.Sprintf(format, args...))
}

// same notes a difference between two values.
func (d *differences) same(what, want, got string) {
	if want != got {
		d.add("%s is %q, want %q", what, got, want)
	}
}

// want is same for a value that is only compared when given.
func (d *differences) want(what, want, got string) { d.unless(want == "", what, want, got) }

func (d *differences) unless(skip bool, what, want, got string) {
	if !skip {
		d.same(what, want, got)
	}
}

// header compares a header with its allowed values; lists compare without
// regard to blanks and order.
func (d *differences) header(what, name string, want values, got http.Header) {
	present := got.Values(name)
	if len(want) == 0 {
		if len(present) > 0 {
			d.add("%s %s is %q, want it absent", what, name, present)
		}
		return
	}
	list := listOf(strings.Join(present, ","))
	if len(present) == 0 || !slices.ContainsFunc(want, func(w string) bool { return slices.Equal(list, listOf(w)) }) {
		d.add("%s %s is %q, want one of %q", what, name, present, []string(want))
	}
}

func listOf(value string) []string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return parts
}

func (d differences) err() error {
	if len(d) == 0 {
		return nil
	}
	slices.Sort(d)
	return fmt.Errorf("%s", strings.Join(d, "; "))
}

func clipped(b []byte) string {
	const limit = 600
	if len(b) > limit {
		return string(b[:limit]) + "…"
	}
	return string(b)
}
