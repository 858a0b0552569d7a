package terminal

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
)

// ProxyPrinter prints proxies as rows of one table, at once or as they change.
type ProxyPrinter struct {
	w      io.Writer
	wide   Wide
	widths []int // of what has been printed: later rows stand below it
}

// NewProxyPrinter returns a printer that has printed nothing.
func NewProxyPrinter(w io.Writer, wide Wide) *ProxyPrinter { return &ProxyPrinter{w: w, wide: wide} }

// Print prints rows, below the header the first time.
func (p *ProxyPrinter) Print(proxies []fleet.Proxy) {
	if len(proxies) == 0 {
		return
	}
	t := table{style: StyleFor(p.w), width: terminalWidth(p.w), soft: []int{1}, least: p.widths}
	if p.wide {
		t.width = 0
	}
	t.head = columns(p.wide, "STATE", []string{"GATEWAY", "POD", "READY", "CONNECTED", "WANTED", "HAS"},
		"LAG", "CONTROLLER", "NODE", "ZONE", "CERTIFICATE", "ENVOY")
	now := time.Now()
	for i := range proxies {
		t.rows = append(t.rows, proxyRow(t.style, p.wide, &proxies[i], now))
	}
	head, rows := t.render()
	if p.widths == nil {
		fmt.Fprintln(p.w, head)
	}
	p.widths = t.widths()
	for _, lines := range rows {
		for _, line := range lines {
			fmt.Fprintln(p.w, line)
		}
	}
}

func proxyRow(s Style, wide Wide, p *fleet.Proxy, now time.Time) row {
	connected, lag := "", ""
	if !p.Connected.IsZero() {
		connected = duration.HumanDuration(now.Sub(p.Connected))
		lag = time.Duration(p.LagSeconds * float64(time.Second)).Round(time.Millisecond).String()
	}
	has := p.Acknowledged
	if has != p.Wanted {
		has = s.yellow(has)
	}
	cells := []string{p.Gateway, dash(p.Pod), ready(p), dash(connected), dash(p.Wanted), dash(has)}
	cells = columns(wide, proxyState(s, p.State), cells,
		dash(lag), dash(p.Replica), dash(p.Node), dash(p.Zone), dash(ends(p.CertificateEnds, now)), dash(p.Envoy))
	return row{cells: cells, remark: p.Remark()}
}

func proxyState(s Style, state fleet.State) string {
	switch {
	case state == fleet.Current:
		return s.green(string(state))
	case state.IsWell() || state == fleet.LastGood || state == fleet.NotReady:
		return s.yellow(string(state))
	default:
		return s.red(string(state))
	}
}

func ready(p *fleet.Proxy) string {
	switch {
	case p.Draining:
		return "draining"
	case p.Ready == nil:
		return "-"
	case *p.Ready:
		return "yes"
	default:
		return "no"
	}
}

// ends says in how long something ends.
func ends(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.Before(now):
		return "ended"
	default:
		return duration.HumanDuration(at.Sub(now))
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
