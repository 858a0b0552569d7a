package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The files in the private directory of a Gateway.
const (
	bootstrapFile = "bootstrap.json"
	recordFile    = "envoy.json"
	logFile       = "envoy.log"
	lockFile      = "lock"
	adminSocket   = "admin.sock"
)

// record is what a supervisor writes for the next one: which process it has
// started, and with what.
type record struct {
	PID int `json:"pid"`
	// Identity tells the process from a later one with the same pid.
	Identity string    `json:"identity"`
	Started  time.Time `json:"started"`
	Binary   string    `json:"binary"`
	Version  string    `json:"version"`
	// Config is a hash of everything else that it was started with and that
	// can't be changed in a running process.
	Config string `json:"config"`
	// Draining is set before it is drained. Its own answers don't always tell:
	// an Envoy that waits for its first configuration says INITIALIZING.
	Draining bool `json:"draining,omitempty"`
}

func configHash(bootstrap []byte, concurrency int) string {
	h := sha256.New()
	fmt.Fprintf(h, "concurrency %d\n", concurrency)
	h.Write(bootstrap)
	return hex.EncodeToString(h.Sum(nil))
}

// readRecord returns the record in dir; nil if there is none. An unreadable
// one counts as none: the admin socket then still leads to a leftover process.
func readRecord(dir string) (*record, error) {
	raw, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	return r, nil
}

func (r *record) write(dir string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, recordFile), append(raw, '\n'), 0o600)
}
