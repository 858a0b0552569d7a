// Package output holds what programs and loggers write, for tests that read it meanwhile.
package output

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer is a bytes.Buffer that several goroutines may write and read. Its zero value is
// empty and ready to use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that has been written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Has reports whether a text has been written.
func (b *Buffer) Has(text string) bool { return strings.Contains(b.String(), text) }

// Tail returns the last n lines.
func (b *Buffer) Tail(n int) string {
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
