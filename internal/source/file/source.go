package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// stdinName is how standard input is named, in paths and in problems.
const stdinName = "-"

// Options say what to read.
type Options struct {
	// Paths are directories (read recursively: .yaml, .yml, .json), files (any
	// name) or "-" for standard input. Earlier ones win over later ones where both
	// define an object; below one path, the definition that was there first.
	Paths []string
	// Stdin is read when a path is "-".
	Stdin io.Reader
	// Kinds are those that are read; nil is kind.All.
	Kinds *kind.Table
	// Experimental selects the experimental channel of the Gateway API.
	Experimental bool
	// StateDir is a private directory, locked by this process, in which Run keeps the last
	// valid versions of objects and their age; empty keeps nothing beyond the process.
	StateDir string
	// Strict has Run fail with a source.MistakesError where files have mistakes and nothing is kept
	// of an earlier process.
	Strict bool
	Log    *slog.Logger
}

// Source reads manifests from files. Its methods may be called several times,
// but not at the same time.
type Source struct {
	paths     []string
	here      string // the working directory
	stateDir  string
	strict    bool
	stdin     io.Reader
	validator *schema.Validator
	log       *slog.Logger

	stdinOnce sync.Once
	stdinText []byte
	stdinErr  error

	foreignMu   sync.Mutex
	foreignSeen map[string]bool

	timing timing
	notify func() (notifier, error)
}

// New checks the options. Paths need not exist: what can't be read is a Problem,
// and gets read when it appears.
func New(opts Options) (*Source, error) {
	if len(opts.Paths) == 0 {
		return nil, errors.New("no path given: name a directory, a file, or \"-\" for standard input")
	}
	s := &Source{
		stdin: opts.Stdin, stateDir: opts.StateDir, strict: opts.Strict, log: opts.Log, foreignSeen: map[string]bool{},
		timing: defaultTiming, notify: newNotifier,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	seen := map[string]bool{}
	for _, path := range opts.Paths {
		if path == "" {
			return nil, errors.New("a path is empty: name a directory, a file, or \"-\" for standard input")
		}
		if path != stdinName {
			path = filepath.Clean(path)
		} else if opts.Stdin == nil {
			return nil, errors.New("path \"-\" is given, but there is no standard input")
		}
		if !seen[path] {
			seen[path] = true
			s.paths = append(s.paths, path)
		}
	}
	var err error
	if s.here, err = os.Getwd(); err != nil && s.stateDir != "" {
		return nil, fmt.Errorf("file source: %w", err)
	}
	if s.validator, err = schema.New(cmp.Or(opts.Kinds, kind.All), opts.Experimental); err != nil {
		return nil, fmt.Errorf("file source: %w", err)
	}
	return s, nil
}

// Load reads everything once.
func (s *Source) Load(ctx context.Context) (source.Batch, error) {
	return newState(s).scanAll(ctx, nil)
}

// foreign logs a kind that is left alone, once.
func (s *Source) foreign(apiVersion, kind string) {
	s.foreignMu.Lock()
	defer s.foreignMu.Unlock()
	if name := apiVersion + " " + kind; !s.foreignSeen[name] {
		s.foreignSeen[name] = true
		s.log.Debug("objects of a kind that is not read are ignored", "apiVersion", apiVersion, "kind", kind)
	}
}

// readStdin reads standard input, the first time that it is wanted.
func (s *Source) readStdin() ([]byte, error) {
	s.stdinOnce.Do(func() { s.stdinText, s.stdinErr = readBounded(s.stdin, 0) })
	return s.stdinText, s.stdinErr
}

// timing is how long things may take. Tests use shorter times.
type timing struct {
	settle    time.Duration // quiet after the last event before reading
	complete  time.Duration // the same, if all that happened is that files became complete
	apart     time.Duration // from one reading to the next of those
	maxSettle time.Duration // the longest of both, when events don't end
	poll      time.Duration // between scans where watching is not possible
	check     time.Duration // between looks at the paths themselves
	// emptied is how long an emptied file keeps its objects: programs that write in place
	// truncate first, and may take their time to write.
	emptied time.Duration
}

var defaultTiming = timing{
	settle:    25 * time.Millisecond,
	complete:  2 * time.Millisecond,
	apart:     10 * time.Millisecond,
	maxSettle: 500 * time.Millisecond,
	poll:      2 * time.Second,
	check:     5 * time.Second,
	emptied:   500 * time.Millisecond,
}
