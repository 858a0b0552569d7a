package blueprint

import (
	"fmt"
	"strings"
)

// part is a piece of a text: itself, or the source of an expression.
type part struct {
	text       string
	expression bool
}

// split divides a text of a template at its expressions, ${…}. A dollar sign before that
// stands for the text itself: $${ is ${.
func split(text string) ([]part, error) {
	var out []part
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			out = append(out, part{text: plain.String()})
			plain.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "$${"):
			plain.WriteString("${")
			i += 3
		case strings.HasPrefix(text[i:], "${"):
			end, err := expressionEnd(text, i+2)
			if err != nil {
				return nil, err
			}
			flush()
			source := strings.TrimSpace(text[i+2 : end])
			if source == "" {
				return nil, fmt.Errorf("the expression at character %d is empty", i+1)
			}
			out = append(out, part{source, true})
			i = end + 1
		default:
			plain.WriteByte(text[i])
			i++
		}
	}
	flush()
	return out, nil
}

// expressionEnd is where the brace stands that ends the expression from a place on. Braces in
// CEL's maps and in its strings don't.
func expressionEnd(text string, from int) (int, error) {
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i, nil
			}
			depth--
		case '"', '\'':
			raw := i > from && (text[i-1] == 'r' || text[i-1] == 'R') && (i-1 == from || !isNameByte(text[i-2]))
			i = stringEnd(text, i, raw)
		}
	}
	return 0, fmt.Errorf("the expression at character %d has no end; it needs a }", from-1)
}

// stringEnd is where the last quote of a CEL string stands, or the end of the text.
func stringEnd(text string, from int, raw bool) int {
	quote := text[from : from+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text[from:], triple) {
		quote = triple
	}
	for i := from + len(quote); i < len(text); i++ {
		if !raw && text[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(text[i:], quote) {
			return i + len(quote) - 1
		}
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
