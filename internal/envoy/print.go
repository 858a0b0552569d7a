package envoy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON returns the resource as Envoy's documentation writes it, for a person to
// read. Private keys are left out, and so are the sums of API keys and passwords.
func (r *Resource) JSON() (json.RawMessage, error) {
	if r.Type >= NumTypes {
		return nil, fmt.Errorf("resource %s: %s has no message", r.Name, r.Type)
	}
	m := types[r.Type].message()
	if err := proto.Unmarshal(r.Body(), m); err != nil {
		return nil, err
	}
	if s, ok := m.(*tlsv3.Secret); ok {
		s.Type = nil // the name is all that may be told
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	// protojson varies its white space on purpose.
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return sums.ReplaceAll(compact.Bytes(), []byte("-- a client, left out")), nil
}

// JSON returns a virtual host likewise, without what filters are told.
func (p *Part) JSON() (json.RawMessage, error) {
	o, err := OfferHost(p)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(o.shown)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

// sums are the entries of luaTable, as JSON has them: whoever has the sums may try keys at leisure.
var sums = regexp.MustCompile(`t\[\\"(?:[^"\\]|\\\\)*\\"\] = \\"(?:[^"\\]|\\\\)*\\"`)
