package topology

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The bounds of a key set.
const (
	maxJWKS     = 256 << 10
	maxJWKSKeys = 64
	maxRSABits  = 8192 // who verifies by longer ones takes long
)

// jwks reads a key set, and returns it with nothing in it but public keys that sign; empty
// where there are none.
func (r *authReader) jwks(in *v1alpha1.JWKS) string {
	const field = ".jwt.jwks"
	var text []byte
	switch {
	case in.Inline != nil:
		text = []byte(*in.Inline)
	case in.SecretRef != nil:
		data, ok := r.secret(field+".secretRef", in.SecretRef.Name)
		if !ok {
			return ""
		}
		if text, ok = r.entry(field+".secretRef", "Secret", in.SecretRef, data); !ok {
			return ""
		}
	case in.ConfigMapRef != nil:
		key := object.Name{Namespace: r.namespace, Name: in.ConfigMapRef.Name}
		m, ok := flow.Get(r.ctx, r.graph.in.ConfigMaps, key)
		if !ok {
			r.problem(field+".configMapRef", "names ConfigMap %s, which does not exist; create it or correct the name", key)
			return ""
		}
		data := make(map[string][]byte, len(m.Data))
		for k, v := range m.Data {
			data[k] = []byte(v)
		}
		if text, ok = r.entry(field+".configMapRef", "ConfigMap", in.ConfigMapRef, data); !ok {
			return ""
		}
	default:
		r.problem(field, "needs exactly one of inline, secretRef and configMapRef")
		return ""
	}
	set, problems := publicKeys(text)
	for _, p := range problems {
		r.problem(field, "%s", p)
	}
	return set
}

// entry returns the entry that a reference is to; false, and a problem, where there is none.
func (r *authReader) entry(field, of string, ref *v1alpha1.KeyRef, data map[string][]byte) ([]byte, bool) {
	key := ref.Key
	if key == "" {
		key = jwksKey
	}
	text, ok := data[key]
	if !ok {
		r.problem(field, "names %s %s/%s, which has no entry %q%s", of, r.namespace, ref.Name, key, condition.Have(sortedKeys(data)))
	}
	return text, ok
}

// publicKeys returns those keys of a key set that can verify signatures, and what is wrong
// with the others. Empty for none.
func publicKeys(text []byte) (set string, problems []string) {
	if len(text) > maxJWKS {
		return "", []string{fmt.Sprintf("has %d bytes; at most %d are read", len(text), maxJWKS)}
	}
	var in struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return "", []string{"is no JSON Web Key Set, which is a JSON object with keys: " + err.Error()}
	}
	if len(in.Keys) > maxJWKSKeys {
		return "", []string{fmt.Sprintf("has %d keys; at most %d are read", len(in.Keys), maxJWKSKeys)}
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
