package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// kept is a set as it is kept for the next process.
type kept struct {
	keyset.Location
	Reach keyset.Reach `json:",omitempty"`
	fetched
	Fetched time.Time
}

// answer is what is known of the set as long as nothing goes wrong.
func (s *fetched) answer() keyset.Answer { return keyset.Answer{Keys: s.Keys, Endpoints: s.Endpoints} }

const (
	keptFile = "key-sets.json"
	// maxKept bounds the file: what is beyond is not kept.
	maxKept = 16 << 20
	// keepPause is the time between two writes: sets come in crowds.
	keepPause = time.Second
)

// restore reads what an earlier process has kept. A set that can't be read is fetched.
func (f *Fetcher) restore() {
	if f.opts.StateDir == "" {
		return
	}
	text, err := read(filepath.Join(f.opts.StateDir, keptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []kept
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		f.opts.Log.Warn("the key sets that were kept can't be read; they are fetched", "error", err)
		return
	}
	for _, s := range list[:min(len(list), MaxSets)] {
		// They are checked as those that are fetched.
		if keys, _ := keyset.Parse([]byte(s.Keys)); keys != "" {
			s.Keys = keys
			f.kept[keyset.Key{Location: s.Location, Reach: s.Reach}] = s
		}
	}
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxKept+1))
	if err == nil && len(text) > maxKept {
		err = fmt.Errorf("%s has more than %d bytes", path, maxKept)
	}
	return text, err
}

// changed notes that there is something to keep.
func (f *Fetcher) changed() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// keep writes what is to be kept, whenever that is something else, until ctx ends.
func (f *Fetcher) keep(ctx context.Context) {
	written := ""
	for {
		select {
		case <-f.news:
		case <-ctx.Done():
			return
		}
		if f.opts.StateDir == "" {
			continue
		}
		if text := f.toKeep(); text != written {
			if err := write(f.opts.StateDir, text); err != nil {
				f.opts.Log.Warn("key sets can't be kept: a process that restarts has to fetch them first", "error", err)
			} else {
				written = text
			}
		}
		select {
		case <-time.After(keepPause):
		case <-ctx.Done():
			return
		}
	}
}

// toKeep is the file of what is to be kept: the sets that are wanted. Of those that an earlier
// process has kept no others are left.
func (f *Fetcher) toKeep() string {
	f.mu.Lock()
	var list []kept
	for _, s := range f.sets {
		if s.good.Keys != "" {
			list = append(list, s.good)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b kept) int {
		return cmp.Or(cmp.Compare(a.URI, b.URI), cmp.Compare(a.Issuer, b.Issuer), cmp.Compare(a.Reach, b.Reach))
	})
	var b strings.Builder
	for i, s := range list {
		one, _ := json.Marshal(s) //nolint:errchkjson // of our own types
		if b.Len()+len(one) > maxKept-2 {
			f.opts.Log.Warn("key sets are too many to be kept: a process that restarts has to fetch some first", "kept", i, "of", len(list))
			break
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(one)
	}
	return "[" + b.String() + "]"
}

// nothing is the file of no sets.
const nothing = "[]"

// write replaces the file as a whole; without sets there is none.
func write(dir, text string) error {
	if text == nothing {
		err := os.Remove(filepath.Join(dir, keptFile))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	f, err := os.CreateTemp(dir, "."+keptFile+"-") // which nobody else may read
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, keptFile))
}
