package terminal

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// browser is what a person has chosen to see, by keys: the overview, or everything from some
// line on.
type browser struct {
	choice Choice
	list   bool // everything instead of the overview
	help   bool
	search string
	prompt string // what is asked for while a text is typed; empty otherwise
	typed  []rune
	note   string // what came of the last key, where nothing else shows it

	top   int // the first line of the list in the window
	found int // the line that the search has found; -1 for none
	seek  int // 1 or -1: the next or the previous one is to be found
	// The list as it was drawn last, and how many lines of it a window has.
	lines []string
	page  int
	// all is the list, as long as nothing of what it is drawn from changes: keys must not
	// cost more than what they show.
	all   []string
	width int
	stale bool
}

func newBrowser() *browser { return &browser{found: -1} }

// The texts that are asked for.
const (
	promptSearch = "/"
	promptFilter = "filter: "
)

// maxTyped bounds what is typed, in characters: each key draws all of it, and a whole file may
// be pasted by mistake.
const maxTyped = 256

// take does what a key asks for. It reports whether that is to quit.
func (b *browser) take(k keystroke) (quit bool) {
	b.note = ""
	switch {
	case b.prompt != "":
		b.write(k)
	case k.pasted: // no letter of it is a command
	case b.help:
		b.help = false
	default:
		return b.command(k.key)
	}
	return false
}

// write goes on with a text that is typed.
func (b *browser) write(k keystroke) {
	switch k.key {
	case keyEscape:
		b.prompt, b.typed = "", nil
	case keyClear:
		b.typed = nil
	case keyErase:
		if len(b.typed) == 0 {
			b.prompt = ""
			return
		}
		b.typed = b.typed[:len(b.typed)-1]
	case keyEnter:
		prompt, typed := b.prompt, strings.TrimSpace(string(b.typed))
		b.prompt, b.typed = "", nil
		if prompt == promptFilter {
			b.show(func(c *Choice) { c.Filter = typed })
			return
		}
		b.search, b.found = typed, -1
		if typed != "" {
			b.list, b.seek = true, 1
		}
	default:
		if k.key > 0 && len(b.typed) < maxTyped {
			b.typed = append(b.typed, rune(k.key))
		}
	}
}

// command is a key where no text is typed.
func (b *browser) command(k key) (quit bool) {
	switch k {
	case 'q':
		return true
	case '?', 'h':
		b.help = true
	case '/':
		b.prompt = promptSearch
	case 'f':
		b.prompt, b.typed = promptFilter, []rune(b.choice.Filter)
	case 'p':
		b.show(func(c *Choice) { c.Wrong = !c.Wrong })
	case keyEnter:
		each := !b.choice.Each
		b.show(func(c *Choice) { c.Each = each })
	case keyEscape:
		*b = *newBrowser()
	case 'n', 'N':
		b.again(k)
	default:
		b.scroll(k)
	}
	return false
}

// show goes to the top of the list of what is chosen.
func (b *browser) show(choose func(*Choice)) {
	choose(&b.choice)
	b.list, b.top, b.found, b.lines, b.all = true, 0, -1, nil, nil
}

func (b *browser) again(k key) {
	switch {
	case b.search == "":
		b.note = "nothing is searched for: type /"
	case k == 'n':
		b.list, b.seek = true, 1
	default:
		b.list, b.seek = true, -1
	}
}

func (b *browser) scroll(k key) {
	page := max(b.page-1, 1) // one line of the former page stays
	switch k {
	case keyUp, 'k':
		b.top--
	case keyDown, 'j':
		b.top++
	case keyPageUp, 'b':
		b.top -= page
	case keyPageDown, ' ':
		b.top += page
	case keyHome, 'g':
		b.top = 0
	case keyEnd, 'G':
		b.top = math.MaxInt / 2
	default:
		return
	}
	b.list = true
}

// window returns the lines of the list that a window shows, after what the last keys asked
// for.
func (b *browser) window(lines []string, page int) []string {
	page = max(page, 1)
	if b.lines != nil && !slices.Equal(lines, b.lines) {
		b.top, b.found = b.follow(lines, b.top), b.follow(lines, b.found)
	}
	b.lines, b.page = lines, page
	if b.seek != 0 {
		b.find()
	}
	b.top = min(max(b.top, 0), max(len(lines)-page, 0))
	out := slices.Clone(lines[b.top:min(b.top+page, len(lines))])
	if i := b.found - b.top; b.found >= 0 && i >= 0 && i < len(out) {
		out[i] = ">" + strings.TrimPrefix(out[i], " ")
	}
	return out
}

// follow returns where a line has gone in a list that has changed: what a person reads
// stays where it is when something is added above.
func (b *browser) follow(lines []string, i int) int {
	if i <= 0 || i >= len(b.lines) {
		return i
	}
	for off := range max(len(lines)-i, i) + 1 {
		for _, j := range []int{i - off, i + off} {
			if j >= 0 && j < len(lines) && lines[j] == b.lines[i] && lines[j] != "" {
				return j
			}
		}
	}
	return i
}

// find goes to the next line that has what is searched for, the first one after the last.
func (b *browser) find() {
	step, at := b.seek, b.found
	b.seek = 0
	if at < 0 { // the first search begins with what is in view
		at = b.top - 1
		if step < 0 {
			at = b.top
		}
	}
	n := len(b.lines)
	for range n {
		at = ((at+step)%n + n) % n
		if contains(plain(b.lines[at]), b.search) {
			b.found = at
			if at < b.top || at >= b.top+b.page {
				b.top = at - b.page/3
			}
			return
		}
	}
	b.found, b.note = -1, "not found: "+b.search
}

// contains reports whether a text has another, in letters of any case.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// keys is the last line of the screen: what can be typed, and where the window is.
func (b *browser) keys(style Style, width int) string {
	const more = "  p problems  f filter  / search  ? help"
	switch {
	case b.prompt != "":
		return clip(style.bold(b.prompt+string(b.typed)+"_")+style.dim("  Enter takes it, Esc leaves it"), width)
	case b.help:
		return clip(style.dim("any key goes back"), width)
	case b.note != "":
		return clip(style.yellow(b.note), width)
	case !b.list:
		return clip(style.dim("q quit  ↑↓ scroll  Enter all"+more), width)
	}
	where := fmt.Sprintf("%d-%d of %d", b.top+1, min(b.top+b.page, len(b.lines)), len(b.lines))
	if b.choice.Wrong {
		where = "only problems  " + where
	}
	if b.choice.Filter != "" {
		where = "filter " + b.choice.Filter + "  " + where
	}
	if b.search != "" {
		where = "/" + b.search + " n N  " + where
	}
	keys := "q quit  Esc overview"
	if room := width - visible(where) - visible(keys) - 2; room >= visible(more) {
		keys += more
	}
	where = clip(where, max(width-visible(keys)-2, 0))
	return clip(style.dim(keys+strings.Repeat(" ", max(width-visible(keys)-visible(where), 2)))+style.bold(where), width)
}

// helpLines tell the keys.
func helpLines(style Style) []string {
	lines := []string{"  " + style.bold("KEYS")}
	for _, l := range [][2]string{
		{"q, Ctrl-C", "stop serving: clients may finish; Ctrl-C again ends them"},
		{"Esc", "back to the overview, without a filter or a search"},
		{"j k ↓ ↑", "scroll through everything, a line"},
		{"Space b PgDn PgUp", "a page"},
		{"g G Home End", "to the top, to the newest log lines at the end"},
		{"Enter", "everything; equal problems one by one, or as one again"},
		{"p", "only what is wrong, or everything again"},
		{"f", "only what has some words: a kind, a namespace, a name, a host"},
		{"/ n N", "search for a text; the next line with it, the previous one"},
		{"Ctrl-Z", "suspend; fg goes on. The Envoys serve meanwhile"},
		{"Ctrl-S Ctrl-Q", "hold the screen still, let it go on"},
		{"Ctrl-L", "draw the screen anew"},
	} {
		lines = append(lines, fmt.Sprintf("    %-18s %s", l[0], style.dim(l[1])))
	}
	return append(lines, "", "  "+style.dim("`gatehouse status` in another terminal prints all of it."))
}
