package terminal

import "slices"

// section is a part of the screen: a heading and blocks of lines, the most
// important first.
type section struct {
	head   string
	blocks [][]string
	// urgent is how many of the blocks, from the first, tell of something wrong.
	urgent int
	// more returns the line that stands for the blocks from the n-th on; nil if
	// they can be left out without a word.
	more func(n int) string
	// last makes the last blocks the important ones, as in a log.
	last bool

	budget int // lines that the section may have, its heading included
}

// want is the number of lines that the first n blocks need, with the heading and,
// if there are more, the line that says so.
func (s *section) want(n int) int {
	if len(s.blocks) == 0 {
		return 0
	}
	lines := 1
	for _, b := range s.blocks[:n] {
		lines += len(b)
	}
	if n < len(s.blocks) && s.more != nil {
		lines++
	}
	return lines
}

func (s *section) all() int { return s.want(len(s.blocks)) }

// lines returns what fits into the budget. What doesn't is counted in a last line.
func (s *section) lines() []string {
	out := []string{s.head}
	if s.last {
		return append(out, s.tail()...)
	}
	if s.all() <= s.budget {
		return append(out, slices.Concat(s.blocks...)...)
	}
	n, reserved := 0, 1
	if s.more == nil {
		reserved = 0
	}
	for ; n < len(s.blocks) && len(out)+len(s.blocks[n])+reserved <= s.budget; n++ {
		out = append(out, s.blocks[n]...)
	}
	// A block that is too long is cut rather than left out, when it is the only one.
	if room := s.budget - reserved - len(out); n == 0 && room > 0 {
		block := slices.Clone(s.blocks[0][:room])
		block[room-1] += " …"
		out = append(out, block...)
		n++
	}
	if n < len(s.blocks) && s.more != nil {
		out = append(out, s.more(n))
	}
	return out
}

func (s *section) tail() []string {
	room := s.budget - 1
	n := len(s.blocks)
	for n > 0 && len(s.blocks[n-1]) <= room {
		n--
		room -= len(s.blocks[n])
	}
	if last := len(s.blocks) - 1; n > last { // even the newest is too long
		return s.blocks[last][:room]
	}
	return slices.Concat(s.blocks[n:]...)
}

// claim is a wish of a section for a number of lines.
type claim struct {
	section *section
	lines   int
}

// share gives out the lines of a screen, claim by claim: what must always be
// visible first, comfort last. Every section that is shown costs an empty line.
func share(lines int, claims []claim) {
	for _, c := range claims {
		want := min(c.lines, c.section.all()) - c.section.budget
		if want <= 0 {
			continue
		}
		left := lines
		if c.section.budget == 0 {
			left-- // the empty line above
		}
		want = min(want, left)
		if c.section.budget+want < 2 {
			continue // a heading alone tells nothing
		}
		lines = left - want
		c.section.budget += want
	}
}
