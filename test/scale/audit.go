package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// audit reads what the controller wrote, from the API server's audit log. The
// log is written before a request is answered.
type audit struct {
	path   string
	user   string
	offset int64
}

// write is what to count by.
type write struct{ resource, subresource, name string }

// upkeep is what a controller writes to stay one, not about its objects: who
// leads, and whose token a proxy has.
var upkeep = map[string]bool{
	"leases": true, "tokenreviews": true, "subjectaccessreviews": true,
}

// forget leaves out all that was written until now.
func (a *audit) forget() error {
	info, err := os.Stat(a.path)
	if err != nil {
		return err
	}
	a.offset = info.Size()
	return nil
}

// writes are all that the controller tried to write since forget, refused ones
// too.
func (a *audit) writes() (map[write]int, error) {
	f, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no audit log", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return nil, err
	}
	all := map[write]int{}
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // the rest of a line is being written
		}
		if err != nil {
			return nil, err
		}
		var event struct {
			Verb      string                                       `json:"verb"`
			User      struct{ Username string }                    `json:"user"`
			ObjectRef struct{ Resource, Subresource, Name string } `json:"objectRef"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("%s: %w", a.path, err)
		}
		switch event.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			if event.User.Username == a.user && !upkeep[event.ObjectRef.Resource] {
				all[write{event.ObjectRef.Resource, event.ObjectRef.Subresource, event.ObjectRef.Name}]++
			}
		}
	}
}

// count sums up those that match, and prints what there was.
func count(all map[write]int, match func(write) bool) float64 {
	n := 0
	kinds := map[string]int{}
	for w, times := range all {
		if match(w) {
			n += times
			kinds[w.resource+"/"+w.subresource] += times
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("  %d writes of %s\n", kinds[kind], kind)
	}
	return float64(n)
}
