package topology

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What follows holds a pair against what Envoy 1.40.0 refuses to load; a test of
// package envoy shows that it does. What a client may refuse, such as an expired
// certificate or another host's name, is not looked at.

// checkPair returns the leaf of a usable chain and key, and the chain as PEM with
// nothing but its certificates: a tls.crt may hold the key too, and the chain is
// shown to people. Its errors quote nothing of what it was given.
func checkPair(chain, key []byte) (*x509.Certificate, string, error) {
	switch {
	case len(chain) == 0:
		return nil, "", errors.New("tls.crt is missing; it must hold the certificate chain as PEM")
	case len(key) == 0:
		return nil, "", errors.New("tls.key is missing; it must hold the private key as PEM")
	}
	all, certificates, err := readChain(chain)
	if err != nil {
		return nil, "", err
	}
	leaf := all[0]
	public, unreadable := readKey(key)
	if i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return unreadable == nil && public.Equal(c.PublicKey) }); i > 0 {
		// Before anything is said of the first: it is an authority's, and wrong in other ways too.
		return nil, "", fmt.Errorf("tls.crt begins with another certificate than the one that tls.key belongs to, which is number %d of %d; put that one first, and after each certificate the one of the authority that signed it", i+1, len(all))
	}
	if err := checkLeaf(leaf); err != nil {
		return nil, "", err
	}
	if unreadable != nil {
		return nil, "", unreadable
	}
	if !public.Equal(leaf.PublicKey) {
		return nil, "", errors.New("tls.key does not belong to the certificate in tls.crt; put the key in with which the certificate was requested")
	}
	return leaf, certificates, nil
}

// pemBlocks returns all blocks of a file. Go skips a block that it can't decode;
// Envoy refuses the file for it. Comments reach Envoy too, in a field that has to
// be UTF-8.
func pemBlocks(file string, text []byte) (blocks []*pem.Block, err error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s is not UTF-8 text; leave nothing in it but PEM blocks", file)
	}
	begun := bytes.Count(append([]byte{'\n'}, text...), []byte("\n-----BEGIN "))
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, block)
	}
	if len(blocks) != begun {
		return nil, fmt.Errorf("%s holds a PEM block that is damaged or cut off; store the whole file anew", file)
	}
	return blocks, nil
}

// readChain parses every certificate, as Envoy does, and writes them out again.
func readChain(chain []byte) (all []*x509.Certificate, certificates string, err error) {
	blocks, err := pemBlocks("tls.crt", chain)
	if err != nil {
		return nil, "", err
	}
	n := 0
	var only bytes.Buffer
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		if len(block.Headers) > 0 {
			return nil, "", fmt.Errorf("certificate %d in tls.crt has headers within its PEM block; remove them", n)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, "", fmt.Errorf("certificate %d in tls.crt can't be read: %w", n, err)
		}
		all = append(all, cert)
		if err := pem.Encode(&only, block); err != nil {
			return nil, "", fmt.Errorf("certificate %d in tls.crt can't be written: %w", n, err)
		}
	}
	if len(all) == 0 {
		return nil, "", errors.New("tls.crt holds no certificate in PEM form")
	}
	return all, only.String(), nil
}

// publicKey is what every public key of the standard library can do.
type publicKey interface{ Equal(crypto.PublicKey) bool }

// readKey returns the public half of the first private key.
func readKey(key []byte) (publicKey, error) {
	blocks, err := pemBlocks("tls.key", key)
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		switch {
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			continue
		case strings.HasPrefix(block.Type, "ENCRYPTED"), block.Headers["DEK-Info"] != "":
			return nil, errors.New("tls.key is encrypted; store it without a passphrase")
		case len(block.Headers) > 0:
			return nil, errors.New("tls.key has headers within its PEM block; remove them")
		}
		if signer, ok := parseKey(block).(crypto.Signer); ok {
			if public, ok := signer.Public().(publicKey); ok {
				return public, nil
			}
		}
		return nil, errors.New("tls.key is not a private key that can be read; use unencrypted PKCS #8, PKCS #1 or SEC 1, each under its own PEM label")
	}
	return nil, errors.New("tls.key holds no private key in PEM form")
}

// parseKey reads a key in the form that its label says, or PKCS #8 of that kind;
// nil if it can't. Envoy tries no other form, unlike crypto/tls.
func parseKey(block *pem.Block) any {
	pkcs8, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	switch block.Type {
	case "PRIVATE KEY":
		return pkcs8
	case "RSA PRIVATE KEY":
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key
		}
		if key, ok := pkcs8.(*rsa.PrivateKey); ok {
			return key
		}
	case "EC PRIVATE KEY":
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key
		}
		if key, ok := pkcs8.(*ecdsa.PrivateKey); ok {
			return key
		}
	}
	return nil
}

// minRSABits is the least that Envoy accepts.
const minRSABits = 2048

// checkLeaf checks the server's own certificate.
func checkLeaf(leaf *x509.Certificate) error {
	if leaf.Subject.CommonName == "" && len(leaf.DNSNames) == 0 && len(leaf.IPAddresses) == 0 && len(leaf.URIs) == 0 {
		return errors.New("the certificate in tls.crt names nothing; it needs a DNS name, an IP address, a URI or a common name")
	}
	if mustStaple(leaf) {
		return errors.New("the certificate in tls.crt has the extension must-staple, which needs OCSP responses, and there are none to staple; request it without that extension")
	}
	switch key := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSABits {
			return fmt.Errorf("the RSA key in tls.crt has %d bits; %d are the least", n, minRSABits)
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
		default:
			return errors.New("the ECDSA key in tls.crt is on an unsupported curve; use P-256, P-384 or P-521")
		}
		if leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
			return errors.New("the key usage of the ECDSA certificate in tls.crt leaves out digitalSignature, which TLS needs; request it with that usage")
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("tls.crt has a key of type %s; use ECDSA, RSA or Ed25519", leaf.PublicKeyAlgorithm)
	}
	return nil
}

// mustStaple reports whether a certificate holds only together with a stapled OCSP
// response (RFC 7633).
func mustStaple(leaf *x509.Certificate) bool {
	feature := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}
	statusRequest := []byte{0x30, 3, 2, 1, 5}
	return slices.ContainsFunc(leaf.Extensions, func(e pkix.Extension) bool {
		return e.Id.Equal(feature) && bytes.Equal(e.Value, statusRequest)
	})
}
