package file

import "bytes"

// chunk is the text of one document and where it begins in its file.
type chunk struct {
	line int // 1-based
	text []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// split cuts text at document markers, which YAML has at column 0 only, even
// inside block scalars and quotes. Cutting before parsing confines a syntax
// error to its document. A document keeps its own "---" line, since content may
// follow on it. Documents of nothing but blanks, comments and directives are
// left out.
func split(text []byte) []chunk {
	text = bytes.TrimPrefix(text, byteOrderMark)
	var chunks []chunk
	start, startLine := 0, 1
	emit := func(end int) {
		if body := text[start:end]; !blank(body) {
			chunks = append(chunks, chunk{line: startLine, text: body})
		}
	}
	for at, line := 0, 1; at < len(text); line++ {
		next := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		switch {
		case isMarker(text[at:next], "---"):
			emit(at)
			start, startLine = at, line
		case isMarker(text[at:next], "..."):
			emit(at)
			start, startLine = next, line+1
		}
		at = next
	}
	emit(len(text))
	return chunks
}

func isMarker(line []byte, marker string) bool {
	if len(line) < len(marker) || string(line[:len(marker)]) != marker {
		return false
	}
	return len(line) == len(marker) || line[len(marker)] == '\n' || line[len(marker)] == '\r' ||
		line[len(marker)] == ' ' || line[len(marker)] == '\t'
}

func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isMarker(line, "---") {
			line = line[len("---"):]
		}
		directive := len(line) > 0 && line[0] == '%'
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !directive {
			return false
		}
	}
	return true
}
