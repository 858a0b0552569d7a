package terminal

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Choice is the part of a view that is shown.
type Choice struct {
	// Each shows equal problems one by one, not as one with a count.
	Each bool
	// Wrong leaves what is wrong.
	Wrong bool
	// Filter leaves what has all its words, in any order and case: in a kind, a namespace,
	// a name, a hostname, a state or a message.
	Filter string
}

func (c Choice) narrow() bool { return c.Wrong || c.Filter != "" }

// of returns the chosen part of a view.
func (c Choice) of(v view.View) view.View {
	if !c.narrow() {
		return v
	}
	v.Items = slices.DeleteFunc(slices.Clone(v.Items), func(it view.Item) bool { return !c.item(it) })
	v.Problems = slices.DeleteFunc(slices.Clone(v.Problems), func(p source.Problem) bool { return !c.matches(p.Error()) })
	return v
}

func (c Choice) item(it view.Item) bool {
	sum := it.Summary
	if _, _, bad := sum.Trouble(); c.Wrong && !bad {
		return false
	}
	texts := append([]string{it.Key(), sum.State, sum.Message}, append(slices.Clone(sum.Hosts), parents(sum)...)...)
	for _, l := range sum.Listeners {
		texts = append(texts, l.Name, address(l), l.Hostname, l.State, l.Message, l.Notes)
	}
	return c.matches(texts...)
}

// matches reports whether every word of the filter is in one of the texts.
func (c Choice) matches(texts ...string) bool {
	for word := range strings.FieldsSeq(c.Filter) {
		if !slices.ContainsFunc(texts, func(text string) bool { return contains(text, word) }) {
			return false
		}
	}
	return true
}

func (c Choice) logs(l LogLine) bool {
	return (!c.Wrong || l.Level >= slog.LevelWarn) && c.matches(l.Text)
}

// List returns all lines of the chosen part of a view, whatever the screen's height.
func (s Screen) List(v view.View) []string {
	chosen := s.Choice.of(v)
	var out []string
	for _, section := range []*section{s.problems(chosen), s.gateways(chosen), s.routes(chosen), s.try(v, chosen.Items, len(chosen.Items)), s.log()} {
		if len(section.blocks) > 0 {
			if len(out) > 0 {
				out = append(out, "")
			}
			out = append(append(out, section.head), slices.Concat(section.blocks...)...)
		}
	}
	if len(out) == 0 {
		out = append(out, "  "+s.Style.yellow("nothing to show; Esc goes back"))
	}
	for i := range out {
		out[i] = clip(out[i], s.Width)
	}
	return out
}

// driven returns the screen as keys have chosen it: the overview or a window of the list,
// above a line that tells the keys.
func (s Screen) driven(v view.View, b *browser) []string {
	if s.Height < 4 { // no room for more than what there is
		return s.Frame(v)
	}
	height := s.Height
	var out []string
	switch {
	case b.help:
		out = append([]string{s.header(v), ""}, helpLines(s.Style)...)
	case b.list:
		s.Choice = b.choice
		if b.all == nil || b.stale || b.width != s.Width {
			b.all, b.width, b.stale = s.List(v), s.Width, false
		}
		out = append([]string{s.header(v), ""}, b.window(b.all, height-3)...)
	default:
		s.Height -= 2
		out = s.Frame(v)
	}
	out = slices.Clip(out[:min(len(out), height-1)])
	for len(out) < height-1 {
		out = append(out, "")
	}
	out = append(out, b.keys(s.Style, s.Width))
	for i := range out {
		out[i] = clip(out[i], s.Width)
	}
	return out
}
