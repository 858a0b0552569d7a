package topology

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

// block is one block of PEM.
func block(label, body string) string {
	return "-----BEGIN " + label + "-----\n" + body + "\n-----END " + label + "-----\n"
}

// wrap returns a key in another form, under a label.
func wrap(t *testing.T, key []byte, form, label string) []byte {
	t.Helper()
	decoded, _ := pem.Decode(key)
	private, err := x509.ParsePKCS8PrivateKey(decoded.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der := decoded.Bytes
	switch form {
	case "PKCS #1":
		der = x509.MarshalPKCS1PrivateKey(private.(*rsa.PrivateKey))
	case "SEC 1":
		if der, err = x509.MarshalECPrivateKey(private.(*ecdsa.PrivateKey)); err != nil {
			t.Fatal(err)
		}
	}
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der})
}

// TestPairAccepted protects everybody whose certificate works with Envoy.
func TestPairAccepted(t *testing.T) {
	good, rsaPair := makePair(t, "ecdsa"), makePair(t, "rsa")
	cases := map[string]pair{
		"a chain":      {append(bytes.Clone(good.crt), rsaPair.crt...), good.key},
		"text around":  {[]byte("a comment\n" + string(good.crt) + "\nanother\n"), []byte("a comment\n" + string(good.key) + "\nanother\n")},
		"CRLF":         {bytes.ReplaceAll(good.crt, []byte("\n"), []byte("\r\n")), bytes.ReplaceAll(good.key, []byte("\n"), []byte("\r\n"))},
		"both in both": {append(bytes.Clone(good.key), good.crt...), append(bytes.Clone(good.crt), good.key...)},
		"parameters":   {good.crt, []byte(block("EC PARAMETERS", "BggqhkjOPQMBBw==") + string(good.key))},
		"SEC 1":        {good.crt, wrap(t, good.key, "SEC 1", "EC PRIVATE KEY")},
		"PKCS #8, EC":  {good.crt, wrap(t, good.key, "PKCS #8", "EC PRIVATE KEY")},
		"PKCS #8, RSA": {rsaPair.crt, wrap(t, rsaPair.key, "PKCS #8", "RSA PRIVATE KEY")},
		"PKCS #1":      {rsaPair.crt, wrap(t, rsaPair.key, "PKCS #1", "RSA PRIVATE KEY")},
	}
	for _, name := range []string{"ecdsa", "other", "rsa", "ed25519", "commonname", "address", "uri", "signs", "feature"} {
		cases[name] = makePair(t, name)
	}
	for name, p := range cases {
		if leaf, _, err := checkPair(p.crt, p.key); err != nil || leaf == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPairRefused protects handshakes from pairs that Envoy refuses, and their
// owner from guessing why.
func TestPairRefused(t *testing.T) {
	good, rsaPair := makePair(t, "ecdsa"), makePair(t, "rsa")
	crt := func(text string) pair { return pair{[]byte(text), good.key} }
	key := func(text string) pair { return pair{good.crt, []byte(text)} }
	for name, c := range map[string]struct {
		pair pair
		want string
	}{
		"nothing":                 {pair{}, "tls.crt is missing"},
		"no key":                  {key(""), "tls.key is missing"},
		"garbage":                 {crt("garbage"), "holds no certificate"},
		"garbage as key":          {key("garbage"), "holds no private key"},
		"mismatch":                {pair{good.crt, makePair(t, "other").key}, "does not belong"},
		"mismatch in kind":        {pair{good.crt, rsaPair.key}, "does not belong"},
		"unreadable":              {crt(string(good.crt) + block("CERTIFICATE", "AAAA")), "certificate 2 in tls.crt can't be read"},
		"empty":                   {crt(string(good.crt) + block("CERTIFICATE", "")), "certificate 2 in tls.crt can't be read"},
		"damaged":                 {crt(string(good.crt) + block("CERTIFICATE", "!!!!")), "damaged or cut off"},
		"damaged before":          {crt(block("CERTIFICATE", "!!!!") + string(good.crt)), "damaged or cut off"},
		"damaged other block":     {crt(string(good.crt) + block("X", "!!!!")), "damaged or cut off"},
		"cut off":                 {crt(string(good.crt) + string(good.crt[:len(good.crt)/2])), "damaged or cut off"},
		"no line break between":   {crt(strings.TrimSpace(string(good.crt)) + string(good.crt)), "damaged or cut off"},
		"damaged key":             {key(block("PRIVATE KEY", "!!!!") + string(good.key)), "tls.key holds a PEM block that is damaged"},
		"headers":                 {crt(strings.Replace(string(good.crt), "-----\n", "-----\nA: b\n\n", 1)), "certificate 1 in tls.crt has headers"},
		"headers of a key":        {key(strings.Replace(string(good.key), "-----\n", "-----\nA: b\n\n", 1)), "tls.key has headers"},
		"Latin-1":                 {crt("caf\xe9\n" + string(good.crt)), "tls.crt is not UTF-8"},
		"Latin-1 by a key":        {key("caf\xe9\n" + string(good.key)), "tls.key is not UTF-8"},
		"encrypted":               {key(block("ENCRYPTED PRIVATE KEY", "AAAA")), "encrypted"},
		"encrypted, the old way":  {key("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"), "encrypted"},
		"SEC 1 labelled PKCS #8":  {pair{good.crt, wrap(t, good.key, "SEC 1", "PRIVATE KEY")}, "under its own PEM label"},
		"PKCS #1 labelled PKCS 8": {pair{rsaPair.crt, wrap(t, rsaPair.key, "PKCS #1", "PRIVATE KEY")}, "under its own PEM label"},
		"RSA labelled EC":         {pair{rsaPair.crt, wrap(t, rsaPair.key, "PKCS #8", "EC PRIVATE KEY")}, "under its own PEM label"},
		"unknown label":           {pair{good.crt, wrap(t, good.key, "PKCS #8", "X PRIVATE KEY")}, "under its own PEM label"},
		"short RSA":               {makePair(t, "rsa1024"), "1024 bits"},
		"curve":                   {makePair(t, "p224"), "unsupported curve"},
		"usage":                   {makePair(t, "encrypts"), "digitalSignature"},
		"nameless":                {makePair(t, "nameless"), "names nothing"},
		"mail":                    {makePair(t, "mail"), "names nothing"},
		"must-staple":             {makePair(t, "staple"), "must-staple"},
		"authority first":         {crt(string(rsaPair.crt) + string(good.crt)), "number 2 of 2"},
		"bad authority first":     {crt(string(makePair(t, "encrypts").crt) + string(rsaPair.crt) + string(good.crt)), "number 3 of 3"},
	} {
		leaf, _, err := checkPair(c.pair.crt, c.pair.key)
		if err == nil || leaf != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestChainHoldsNoKey protects the key of a combined file, certificate and key in
// tls.crt, from being shown with the chain.
func TestChainHoldsNoKey(t *testing.T) {
	p := makePair(t, "ecdsa")
	_, chain, err := checkPair(append(bytes.Clone(p.crt), p.key...), p.key)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(chain, "PRIVATE") || !strings.Contains(chain, "CERTIFICATE") {
		t.Errorf("the chain of a combined file is\n%s", chain)
	}
}
