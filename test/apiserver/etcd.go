package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// store is an etcd, by the JSON form of its protocol: its client would be a
// dependency for two calls.
type store struct {
	url    string
	client *http.Client
}

// entry is a key and its value. JSON has both in base64, as encoding/json does it.
type entry struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value,omitempty"`
	ModRevision string `json:"mod_revision,omitempty"`
}

// reading is what is read of entries.
type reading string

const (
	onlyKeys     reading = "keys"
	wholeEntries reading = "whole"
)

// all returns everything that is stored.
func (s *store) all(ctx context.Context, what reading) ([]entry, error) {
	var out struct {
		Entries []entry `json:"kvs"`
	}
	first := []byte{0} // as both ends of a range: every key
	err := s.call(ctx, "range", map[string]any{"key": first, "range_end": first, "keys_only": what == onlyKeys}, &out)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return out.Entries, nil
}

// put writes an entry. An etcd that has just started may take a while.
func (s *store) put(ctx context.Context, e entry) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.call(ctx, "put", e, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd: %s: %w", e.Key, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// compact forgets all revisions before the present one.
func (s *store) compact(ctx context.Context) error {
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	first := []byte{0}
	if err := s.call(ctx, "range", map[string]any{"key": first, "count_only": true}, &now); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if err := s.call(ctx, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

func (s *store) call(ctx context.Context, verb string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v3/kv/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", verb, response.Status, text)
	case out == nil:
		return nil
	}
	return json.Unmarshal(text, out)
}
