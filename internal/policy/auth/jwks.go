package auth

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// jwks reads a key set, and returns it with nothing in it but public keys that sign; empty
// where there are none. A set that is fetched is not read here: its location is returned.
func (r *reader) jwks(of *v1alpha1.JWT) (set string, fetched *keyset.Location) {
	const field = ".jwt.jwks"
	if l, ok := location(of); ok {
		return "", r.fetched(l, ".jwt", of.JWKS == nil)
	}
	in := of.JWKS
	var text []byte
	switch {
	case in.Inline != nil:
		text = []byte(*in.Inline)
	case in.SecretRef != nil:
		data, ok := r.secret(field+".secretRef", in.SecretRef.Name)
		if !ok {
			return "", nil
		}
		if text, ok = r.entry(field+".secretRef", "Secret", in.SecretRef, data); !ok {
			return "", nil
		}
	case in.ConfigMapRef != nil:
		key := object.Name{Namespace: r.namespace, Name: in.ConfigMapRef.Name}
		texts, ok := r.world.ConfigMap(key)
		if !ok {
			r.Problem(field+".configMapRef", "names ConfigMap %s, which does not exist; create it or correct the name", key)
			return "", nil
		}
		data := make(map[string][]byte, len(texts))
		for k, v := range texts {
			data[k] = []byte(v)
		}
		if text, ok = r.entry(field+".configMapRef", "ConfigMap", in.ConfigMapRef, data); !ok {
			return "", nil
		}
	default:
		r.Problem(field, "needs exactly one of uri, inline, secretRef and configMapRef; without jwks the issuer is asked")
		return "", nil
	}
	set, problems := keyset.Parse(text)
	for _, p := range problems {
		r.Problem(field, "%s", p)
	}
	return set, nil
}

// entry returns the entry that a reference is to; false, and a problem, where there is none.
func (r *reader) entry(field, of string, ref *v1alpha1.KeyRef, data map[string][]byte) ([]byte, bool) {
	key := ref.Key
	if key == "" {
		key = jwksKey
	}
	text, ok := data[key]
	if !ok {
		r.Problem(field, "names %s %s/%s, which has no entry %q%s", of, r.namespace, ref.Name, key, condition.Have(slices.Sorted(maps.Keys(data))))
	}
	return text, ok
}
