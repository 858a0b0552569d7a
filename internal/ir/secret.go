package ir

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unique"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Secret is a certificate with its key, the certificates of authorities to trust, or
// a text.
type Secret struct {
	Name        SecretKey `json:"name"`
	Certificate string    `json:"certificate,omitempty"`
	Key         Sensitive `json:"key,omitempty"`
	Authorities string    `json:"authorities,omitempty"`
	// AuthoritiesFile is the path, on the proxy's host, of a file with them.
	AuthoritiesFile string    `json:"authoritiesFile,omitempty"`
	Text            Sensitive `json:"text,omitempty"`
}

// SecretKey names what a proxy is given apart from its configuration: the certificate
// that a Secret holds, the certificates of authorities that some objects hold
// together, or what a Login needs. Two keys are equal exactly if they name the same objects. It takes the
// room of one pointer. The zero key is none.
type SecretKey struct{ handle unique.Handle[keyedSecret] }

type keyedSecret struct {
	certificate object.Name
	authorities List[object.Key]
	login       LoginSession
	encrypts    bool // sessions, and is not the client's secret
	serverName  bool // the text is one
	text        string
}

// Certificate returns the key of the certificate that a Secret holds.
func Certificate(secret object.Name) SecretKey {
	if secret.IsZero() {
		return SecretKey{}
	}
	return SecretKey{unique.Make(keyedSecret{certificate: secret, text: secret.String()})}
}

// maxSecretText bounds the text of a key, by which proxies know a secret: a Gateway may
// name many authorities.
const maxSecretText = 400

// Authorities returns the key of the certificates that objects hold, of which there is
// at least one. It stays the same when they are rotated, and is the same for all that
// trust the same objects, in whatever order they name them.
func Authorities(refs ...object.Key) SecretKey {
	sorted := slices.Compact(slices.SortedFunc(slices.Values(refs), object.Key.Compare))
	parts := make([]string, len(sorted))
	for i, ref := range sorted {
		parts[i] = ref.Kind.Name() + "/" + ref.Namespace + "/" + ref.Name.Name
	}
	// No namespace begins with the mark, so that no certificate has this text.
	text := "ca:" + strings.Join(parts, ",")
	if len(text) > maxSecretText {
		sum := sha256.Sum256([]byte(text))
		text = text[:maxSecretText-1-2*len(sum)] + "#" + hex.EncodeToString(sum[:])
	}
	return SecretKey{unique.Make(keyedSecret{authorities: ListOf(sorted...), text: text})}
}

// NamedSecret returns the key of a secret of which only the name is known.
func NamedSecret(name string) SecretKey {
	if name == "" {
		return SecretKey{}
	}
	return SecretKey{unique.Make(keyedSecret{text: name})}
}

// ServerName returns the key of the certificate that clients get who ask for a server name, which is
// in lower case. No other key has its text: those of objects have a slash.
func ServerName(name string) SecretKey {
	return SecretKey{unique.Make(keyedSecret{serverName: true, text: name})}
}

// ServerName returns the server name that the secret is the certificate of; empty where it is none.
func (k SecretKey) ServerName() string {
	if k.IsZero() || !k.handle.Value().serverName {
		return ""
	}
	return k.String()
}

// Certificate returns the Secret with the certificate; zero for authorities.
func (k SecretKey) Certificate() object.Name {
	if k.IsZero() {
		return object.Name{}
	}
	return k.handle.Value().certificate
}

// Authorities returns the objects with the certificates of authorities, sorted, each
// once; none for a certificate.
func (k SecretKey) Authorities() []object.Key {
	if k.IsZero() {
		return nil
	}
	return k.handle.Value().authorities.Slice()
}

// Login returns the sessions that the secret is for, and whether it encrypts them; false where it is
// for none.
func (k SecretKey) Login() (s LoginSession, encrypts, ok bool) {
	if k.IsZero() {
		return LoginSession{}, false, false
	}
	v := k.handle.Value()
	return v.login, v.encrypts, v.login != LoginSession{}
}

// IsZero reports whether no secret is meant.
func (k SecretKey) IsZero() bool { return k == SecretKey{} }

// Equal reports whether two keys are of one secret.
func (k SecretKey) Equal(o SecretKey) bool { return k == o }

// Compare orders keys by their text.
func (k SecretKey) Compare(o SecretKey) int { return strings.Compare(k.String(), o.String()) }

// String returns ns/name for a certificate, ca: with kind/ns/name of every object
// for authorities, and a server name.
func (k SecretKey) String() string {
	if k.IsZero() {
		return ""
	}
	return k.handle.Value().text
}

// MarshalText returns what String does.
func (k SecretKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of a secret, and nothing into it.
func (k *SecretKey) UnmarshalText(text []byte) error {
	*k = NamedSecret(string(text))
	return nil
}

// Sensitive is text that never leaves the process in readable form other than
// on its way to a proxy. Every way to print it says [redacted].
type Sensitive string

const redacted = "[redacted]"

// String returns [redacted].
func (Sensitive) String() string { return redacted }

// GoString returns [redacted].
func (Sensitive) GoString() string { return redacted }

// MarshalText returns [redacted], in JSON and YAML too.
func (Sensitive) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Reveal returns the text itself.
func (s Sensitive) Reveal() string { return string(s) }
