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
	"strings"
	"time"
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

// of reports whether an object is one that a Gateway of this name has: their names
// begin with it.
func (w write) of(gateway string) bool { return strings.HasPrefix(w.name, gateway+"-") }

// event is what is read of a line of the log.
type event struct {
	Verb      string                                       `json:"verb"`
	User      struct{ Username string }                    `json:"user"`
	ObjectRef struct{ Resource, Subresource, Name string } `json:"objectRef"`
	Received  time.Time                                    `json:"requestReceivedTimestamp"`
	Done      time.Time                                    `json:"stageTimestamp"`
	Response  struct{ Code int }                           `json:"responseStatus"`
}

func (e event) write() write {
	return write{e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name}
}

// isWrite reports whether an event is one to count: of what is not upkeep.
func (e event) isWrite() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !upkeep[e.ObjectRef.Resource]
	}
	return false
}

// events calls f with all that the controller asked for since forget.
func (a *audit) events(f func(event)) error {
	log, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no audit log", err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	for r := bufio.NewReader(log); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of a line is being written
		}
		if err != nil {
			return err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
		if e.User.Username == a.user {
			f(e)
		}
	}
}

// writes are all that the controller tried to write since forget, refused ones
// too.
func (a *audit) writes() (map[write]int, error) {
	all := map[write]int{}
	err := a.events(func(e event) {
		if e.isWrite() {
			all[e.write()]++
		}
	})
	return all, err
}

// requests are all that the controller asked for since forget, reads too, without
// Leases and watches.
func (a *audit) requests() (map[write]int, error) {
	all := map[write]int{}
	err := a.events(func(e event) {
		if e.Verb != "watch" && e.ObjectRef.Resource != "leases" {
			w := e.write()
			w.subresource = strings.Trim(w.subresource+" by "+e.Verb, " ")
			all[w]++
		}
	})
	return all, err
}

// first returns when the first write of a kind was done that the controller began
// after a time.
func (a *audit) first(after time.Time, match func(write) bool) (time.Time, error) {
	var first time.Time
	err := a.events(func(e event) {
		ok := e.isWrite() && e.Response.Code < 300 && e.Received.After(after) && match(e.write())
		if ok && (first.IsZero() || e.Done.Before(first)) {
			first = e.Done
		}
	})
	if err == nil && first.IsZero() {
		err = errors.New("nothing of it is written")
	}
	return first, err
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
		fmt.Printf("  %d of %s\n", kinds[kind], kind)
	}
	return float64(n)
}
