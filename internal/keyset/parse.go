package keyset

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// The bounds of a key set.
const (
	MaxBytes   = 256 << 10
	maxKeys    = 64
	minRSABits = 2048 // Envoy's least, see package topology
	maxRSABits = 8192 // who verifies by longer ones takes long
)

// Parse returns those keys of a key set that can verify signatures, and what is wrong
// with the others. Empty for none.
func Parse(text []byte) (set string, problems []string) {
	if len(text) > MaxBytes {
		return "", []string{fmt.Sprintf("has %d bytes; at most %d are read", len(text), MaxBytes)}
	}
	var in struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return "", []string{"is no JSON Web Key Set, which is a JSON object with keys: " + err.Error()}
	}
	if len(in.Keys) > maxKeys {
		return "", []string{fmt.Sprintf("has %d keys; at most %d are read", len(in.Keys), maxKeys)}
	}
	var out jose.JSONWebKeySet
	for i, raw := range in.Keys {
		key, err := signatureKey(raw)
		if err != nil {
			problems = append(problems, fmt.Sprintf("has a key (keys[%d]) that can't be used: %v", i, err))
			continue
		}
		if key != nil {
			out.Keys = append(out.Keys, *key)
		}
	}
	if len(out.Keys) == 0 {
		return "", append(problems, "has no key to verify signatures with")
	}
	public, err := json.Marshal(out)
	if err != nil {
		return "", append(problems, "can't be written: "+err.Error())
	}
	return string(public), problems
}

// signatureKey returns the public part of a key; nil for one that is not for signatures.
func signatureKey(raw []byte) (*jose.JSONWebKey, error) {
	var of struct {
		Type string `json:"kty"`
		Use  string `json:"use"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return nil, errors.New("it is no JSON object")
	}
	if of.Use != "" && of.Use != "sig" {
		return nil, nil //nolint:nilnil // it is for something else
	}
	if of.Type == "oct" {
		return nil, errors.New("it is a shared secret (kty oct), which whoever verifies tokens could sign them with; use a key pair")
	}
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON(raw); err != nil {
		return nil, errors.New("it can't be read as a key of kty RSA, EC or OKP")
	}
	public := key.Public()
	switch k := public.Key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("it has %d bits; an RSA key needs %d", k.N.BitLen(), minRSABits)
		}
		if k.N.BitLen() > maxRSABits || k.E < 3 || k.E%2 == 0 {
			return nil, fmt.Errorf("it has %d bits and the exponent %d; an RSA key has at most %d bits, and an odd exponent from 3 on", k.N.BitLen(), k.E, maxRSABits)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, errors.New("it is not of kty RSA, EC or OKP")
	}
	return &jose.JSONWebKey{Key: public.Key, KeyID: public.KeyID, Algorithm: public.Algorithm, Use: "sig"}, nil
}
