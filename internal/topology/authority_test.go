package topology

import (
	"strconv"
	"strings"
	"testing"
)

// What a bundle may hold, and that its problem quotes nothing of it.
func TestCheckAuthorities(t *testing.T) {
	one, two := makePair(t, "ecdsa"), makePair(t, "rsa")
	damaged := strings.Replace(string(one.crt), "-----END", "----END", 1)
	for name, c := range map[string]struct {
		text string
		want string // the number of certificates, or a part of the problem
	}{
		"one":         {string(one.crt), "1"},
		"two":         {string(one.crt) + string(two.crt), "2"},
		"comments":    {"# mine\n" + string(one.crt) + "\ntext\n" + string(two.crt), "2"},
		"twice":       {string(one.crt) + string(one.crt), "1"},
		"empty":       {"", "missing or empty"},
		"no PEM":      {"hello", "no certificate"},
		"damaged":     {damaged, "damaged"},
		"half":        {string(one.crt) + damaged, "damaged"},
		"garbage":     {"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n", "certificate 1 in ca.crt can't be read"},
		"private key": {string(one.crt) + string(one.key), "holds a private key"},
		"list":        {"-----BEGIN X509 CRL-----\naGVsbG8=\n-----END X509 CRL-----\n", "PEM block 1 in ca.crt is not a CERTIFICATE"},
		"too large":   {strings.Repeat(string(one.crt), maxAuthorityText/len(one.crt)+1), "are the most"},
		"not text":    {string(one.crt) + "\xff", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := checkAuthorities("ca.crt", []byte(c.text))
			if err == nil {
				if n := strconv.Itoa(strings.Count(got, "-----BEGIN CERTIFICATE-----")); n != c.want {
					t.Errorf("%s certificates, want %s", n, c.want)
				}
				return
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if body := strings.Split(string(one.key), "\n")[1]; strings.Contains(err.Error(), body) {
				t.Error("the problem quotes the key")
			}
		})
	}
}
