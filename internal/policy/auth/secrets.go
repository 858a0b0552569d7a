package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The entries of Secrets and ConfigMaps that are read where a reference names none.
const (
	jwksKey     = "jwks.json"
	htpasswdKey = ".htpasswd"
	clientKey   = "client-secret"
)

// maxAPIKeys is how many keys a Secret may have.
const maxAPIKeys = 30_000

// Contents yields the Secrets and ConfigMaps that a policy refers to.
func Contents(o *v1alpha1.AuthPolicy, yield func(object.Key)) {
	refer := func(of object.Kind, name string) {
		yield(object.Key{Kind: of, Name: object.Name{Namespace: o.Namespace, Name: name}})
	}
	_, _, rules := layerOf(o)
	for _, a := range rules.Authentication {
		switch {
		case a.JWT != nil && a.JWT.JWKS != nil && a.JWT.JWKS.SecretRef != nil:
			refer(kind.Secret, a.JWT.JWKS.SecretRef.Name)
		case a.JWT != nil && a.JWT.JWKS != nil && a.JWT.JWKS.ConfigMapRef != nil:
			refer(kind.ConfigMap, a.JWT.JWKS.ConfigMapRef.Name)
		case a.OIDC != nil:
			refer(kind.Secret, a.OIDC.ClientSecretRef.Name)
		case a.APIKey != nil:
			refer(kind.Secret, a.APIKey.SecretRef.Name)
		case a.Basic != nil:
			refer(kind.Secret, a.Basic.SecretRef.Name)
		}
	}
}

// secret returns what a Secret of the policy's namespace has; false, and a problem, where
// there is none.
func (r *reader) secret(field, of string) (map[string][]byte, bool) {
	key := object.Name{Namespace: r.namespace, Name: of}
	data, ok := r.world.Secret(key)
	if !ok {
		r.Problem(field, "names Secret %s, which does not exist; create it or correct the name", key)
		return nil, false
	}
	return data, true
}

// apiKeys reads the keys of clients; nil where there are none.
func (r *reader) apiKeys(name string, in *v1alpha1.APIKey) *ir.APIKeys {
	out := &ir.APIKeys{
		Name: name, Header: strings.ToLower(in.IdentityHeader), Salt: saltOf(r.namespace, in.SecretRef.Name),
		From: r.sources(".apiKey.from", in.From, ir.CredentialSource{Header: "x-api-key"}),
		Hide: in.HideCredentials,
	}
	fine := r.fitsIdentity(".apiKey", out.Header)
	data, ok := r.secret(".apiKey.secretRef", in.SecretRef.Name)
	switch {
	case !ok || !fine:
		return nil
	case len(data) > maxAPIKeys:
		r.Problem(".apiKey.secretRef", "names Secret %s/%s, which has %d entries; at most %d keys are read", r.namespace, in.SecretRef.Name, len(data), maxAPIKeys)
		return nil
	}
	owner, before := make(map[ir.Sensitive]string, len(data)), len(r.entries)
	for _, client := range slices.Sorted(maps.Keys(data)) {
		key := strings.TrimRight(string(data[client]), "\r\n")
		if key == "" {
			r.brokenEntry(".apiKey.secretRef", "names Secret %s/%s, whose entry %q is empty, so that this client can't pass; give it the client's key", r.namespace, in.SecretRef.Name, client)
			continue
		}
		if strings.ContainsFunc(client, unicode.IsControl) {
			r.brokenEntry(".apiKey.secretRef", "names Secret %s/%s, which has an entry %q; control characters can't be told to a backend, and this client can't pass", r.namespace, in.SecretRef.Name, client)
			continue
		}
		sum := salted(out.Salt, key)
		if first, taken := owner[sum]; taken {
			r.brokenEntry(".apiKey.secretRef", "names Secret %s/%s, whose entries %q and %q are the same key, which counts as that of %q", r.namespace, in.SecretRef.Name, first, client, first)
			continue
		}
		owner[sum] = client
		out.Keys = append(out.Keys, ir.HashedKey{Sum: sum, Client: client})
	}
	if len(out.Keys) == 0 {
		r.noneLeft(before)
	}
	if len(data) == 0 {
		r.Problem(".apiKey.secretRef", "names Secret %s/%s, which has no keys; nobody passes by it", r.namespace, in.SecretRef.Name)
	}
	slices.SortFunc(out.Keys, func(a, b ir.HashedKey) int { return strings.Compare(string(a.Sum), string(b.Sum)) })
	return out
}

// fitsIdentity reports whether a header may tell who a client is.
func (r *reader) fitsIdentity(field, header string) bool {
	if header == "" || !reservedHeader(header) {
		return true
	}
	r.Problem(field+".identityHeader", "can't be %q, which others set; choose another name", header)
	return false
}

// passwords reads a file of htpasswd; nil where there is none.
func (r *reader) passwords(name string, in *v1alpha1.Basic) *ir.Passwords {
	out := &ir.Passwords{
		Name: name, Header: strings.ToLower(in.IdentityHeader), Realm: in.Realm, Salt: saltOf(r.namespace, in.SecretRef.Name),
		Hide: in.HideCredentials,
	}
	if out.Realm == "" {
		out.Realm = name
	}
	fine := r.fitsIdentity(".basic", out.Header)
	data, ok := r.secret(".basic.secretRef", in.SecretRef.Name)
	if !ok || !fine {
		return nil
	}
	entry := in.SecretRef.Key
	if entry == "" {
		entry = htpasswdKey
	}
	text, ok := data[entry]
	if !ok {
		r.Problem(".basic.secretRef", "names Secret %s/%s, which has no entry %q%s", r.namespace, in.SecretRef.Name, entry, condition.Have(slices.Sorted(maps.Keys(data))))
		return nil
	}
	r.htpasswd(out, string(text), in.SecretRef.Name+"/"+entry)
	return out
}

// htpasswd reads the lines of a file of htpasswd.
func (r *reader) htpasswd(out *ir.Passwords, text, file string) {
	seen, line, before := map[string]bool{}, 0, len(r.entries)
	for entry := range strings.Lines(text) {
		line++
		entry = strings.TrimSpace(entry)
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		user, hash, ok := strings.Cut(entry, ":")
		if !ok || user == "" || strings.ContainsFunc(user, unicode.IsControl) {
			r.brokenEntry(".basic.secretRef", "names Secret %s/%s, whose line %d is not name:hash; nobody passes by that line", r.namespace, file, line)
			continue
		}
		sum, sha := strings.CutPrefix(hash, "{SHA}")
		if raw, err := base64.StdEncoding.DecodeString(sum); !sha || err != nil || len(raw) != 20 {
			r.brokenEntry(".basic.secretRef", "names Secret %s/%s, whose line %d, of user %q, has %s, where only {SHA} is read; that user can't pass: set the password anew by `htpasswd -s FILE %s`", r.namespace, file, line, user, hashKind(hash), user)
			continue
		}
		if seen[user] {
			continue // the first line counts, as everywhere
		}
		seen[user] = true
		out.Users = append(out.Users, ir.HashedPassword{User: user, Sum: salted(out.Salt, sum)})
	}
	if len(out.Users) == 0 {
		r.noneLeft(before)
	}
	slices.SortFunc(out.Users, func(a, b ir.HashedPassword) int { return strings.Compare(a.User, b.User) })
}

// hashKind is what htpasswd calls the hash of a line.
func hashKind(hash string) string {
	switch {
	case strings.HasPrefix(hash, "$2"):
		return "a hash of bcrypt"
	case strings.HasPrefix(hash, "$apr1$"), strings.HasPrefix(hash, "$1$"):
		return "a hash of MD5"
	case strings.HasPrefix(hash, "{SHA}"):
		return "a broken hash"
	}
	return "a hash of another kind, or a password in clear"
}

// salted returns the sum by which a key is known.
func salted(salt, key string) ir.Sensitive {
	sum := sha256.Sum256([]byte(salt + key))
	return ir.Sensitive(hex.EncodeToString(sum[:]))
}

// saltOf keeps equal keys of different Secrets from having equal sums.
func saltOf(namespace, secret string) string {
	sum := sha256.Sum256([]byte("gatehouse " + namespace + "/" + secret))
	return hex.EncodeToString(sum[:8])
}
