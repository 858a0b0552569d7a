package lastgood

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protodelim"
)

// format is that of the file: a line of JSON, and for each type a response of discovery with its
// length before it.
const format = 1

type fileHead struct {
	Format  int       `json:"format"`
	Gateway string    `json:"gateway"`
	Envoy   string    `json:"envoy"`
	KeptAt  time.Time `json:"keptAt"`
	SHA256  string    `json:"sha256"` // of what follows the line
}

// Load reads what an earlier process has kept. What can't be used is left, until there is something
// newer.
func (k *Keeper) Load() {
	if !inMemory(filepath.Dir(k.o.File)) {
		k.o.Log.Info("the last good configuration has keys, and the state directory is not in memory; "+
			"it will be known to this process alone", "directory", filepath.Dir(k.o.File))
		k.o.File = ""
		return
	}
	raw, err := os.ReadFile(k.o.File)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var s *state
	if err == nil {
		s, err = k.decode(raw)
	}
	if err != nil {
		k.o.Log.Warn("the last good configuration of before is not used; waiting for the control plane", "error", err)
		return
	}
	k.o.Log.Info("found the last good configuration", "kept_at", s.at.Format(time.RFC3339), "resources", s.len())
	k.mu.Lock()
	defer k.mu.Unlock()
	k.good = s
	for url, set := range s.types { // an Envoy that this process adopts names it
		k.has[url] = maps.Clone(set)
	}
}

func (k *Keeper) write(s *state) {
	if k.o.File == "" {
		return
	}
	raw, err := k.encode(s)
	if err == nil {
		err = replace(k.o.File, raw)
	}
	if err != nil {
		// An old one would come back with what is closed by now.
		err = errors.Join(err, removed(k.o.File))
	}
	if err != nil && !k.failed {
		k.o.Log.Error("the last good configuration can't be kept in a file; trying again", "error", err)
	}
	k.failed = err != nil
	if err != nil {
		k.mu.Lock()
		k.touch()
		k.mu.Unlock()
	}
}

func (k *Keeper) encode(s *state) ([]byte, error) {
	var body bytes.Buffer
	for _, url := range slices.Sorted(maps.Keys(s.types)) {
		m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: url}
		for _, name := range slices.Sorted(maps.Keys(s.types[url])) {
			m.Resources = append(m.Resources, s.types[url][name])
		}
		if _, err := protodelim.MarshalTo(&body, m); err != nil {
			return nil, err
		}
	}
	head, err := json.Marshal(fileHead{format, k.o.Gateway, k.o.Envoy, s.at, sum(body.Bytes())})
	if err != nil {
		return nil, err
	}
	return slices.Concat(head, []byte("\n"), body.Bytes()), nil
}

func (k *Keeper) decode(raw []byte) (*state, error) {
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var head fileHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	switch {
	case head.Format != format:
		return nil, fmt.Errorf("it has the format %d, not %d", head.Format, format)
	case head.Gateway != k.o.Gateway:
		return nil, fmt.Errorf("it is of Gateway %s", head.Gateway)
	case head.Envoy != k.o.Envoy:
		return nil, fmt.Errorf("it is of Envoy %s, and this is %s", head.Envoy, k.o.Envoy)
	case head.SHA256 != sum(body):
		return nil, errors.New("the file is damaged: its checksum is wrong")
	}
	s := &state{at: head.KeptAt, types: map[string]resources{}}
	for in := bufio.NewReader(bytes.NewReader(body)); ; {
		var m discoveryv3.DeltaDiscoveryResponse
		err := protodelim.UnmarshalOptions{MaxSize: -1}.UnmarshalFrom(in, &m)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the file is damaged: %w", err)
		}
		set := resources{}
		for _, r := range m.GetResources() {
			set[r.GetName()] = r
		}
		s.types[m.GetTypeUrl()] = set
	}
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// replace writes a file as a whole: a reader sees the old content or the new. It is in memory, so
// there is no disk to wait for.
func replace(path string, content []byte) error {
	// One name, so that what a process that was ended has left is written over.
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// removed removes a file that may not be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
