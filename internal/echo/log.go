package echo

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

const (
	// logPath is where the log can be read (GET) and emptied (DELETE).
	logPath = "/_echo/log"
	// maxEntries and maxEntryBytes bound the log at about 4 MiB.
	maxEntries    = 2048
	maxEntryBytes = 2048
	// maxKeys bounds the counters; the oldest key goes first.
	maxKeys = 1024
)

// Entry is one request as it reached the backend.
type Entry struct {
	Name   string `json:"name"`
	Key    string `json:"key,omitempty"`
	Method string `json:"method"`
	Host   string `json:"host"`
	URI    string `json:"uri"`
	Proto  string `json:"proto"`
}

// Log remembers the last requests, and how many each key had. The counts are
// exact also when the requests themselves have been dropped.
type Log struct {
	mu      sync.Mutex
	total   int
	entries []Entry // a ring once it is full
	next    int     // where the ring goes on
	counts  map[string]int
	keys    []string // in order of arrival
}

// Dump is the JSON form of a log.
type Dump struct {
	Total   int            `json:"total"`
	Counts  map[string]int `json:"counts"`
	Entries []Entry        `json:"entries"`
}

func newLog() *Log { return &Log{counts: map[string]int{}} }

// record adds r to the log and returns how many requests its key has had; 0 without a
// key.
func (l *Log) record(name, key string, r *http.Request) int {
	entry := Entry{
		Name:   name,
		Key:    key,
		Method: r.Method,
		Host:   clip(r.Host, maxEntryBytes/4),
		URI:    clip(r.RequestURI, maxEntryBytes/2),
		Proto:  r.Proto,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	if len(l.entries) < maxEntries {
		l.entries = append(l.entries, entry)
	} else {
		l.entries[l.next] = entry
		l.next = (l.next + 1) % maxEntries
	}
	if key == "" {
		return 0
	}
	if _, known := l.counts[key]; !known {
		if len(l.keys) == maxKeys {
			delete(l.counts, l.keys[0])
			l.keys = append(l.keys[:0], l.keys[1:]...)
		}
		l.keys = append(l.keys, key)
	}
	l.counts[key]++
	return l.counts[key]
}

// Count returns how many requests carried key.
func (l *Log) Count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[key]
}

// Dump returns the remembered requests, oldest first, and the counts.
func (l *Log) Dump() Dump {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := Dump{Total: l.total, Counts: maps.Clone(l.counts)}
	d.Entries = append(append(make([]Entry, 0, len(l.entries)), l.entries[l.next:]...), l.entries[:l.next]...)
	return d
}

// Reset forgets everything.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total, l.entries, l.next, l.keys = 0, nil, 0, nil
	clear(l.counts)
}

// ServeHTTP answers a GET with the [Dump] as JSON; DELETE empties the log.
func (l *Log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(l.Dump())
	case http.MethodDelete:
		l.Reset()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, HEAD, DELETE")
		http.Error(w, "echo: the log answers GET and DELETE", http.StatusMethodNotAllowed)
	}
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
