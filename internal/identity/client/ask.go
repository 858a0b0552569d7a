package client

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// No answer is longer than this.
const maxAnswer = 256 << 10

// renew asks for a certificate for a new key and puts it in use.
func (c *Client) renew(ctx context.Context) error {
	cert, err := c.ask(ctx)
	c.metrics.asked(err)
	if err != nil {
		return err
	}
	c.use(cert)
	c.metrics.expiry.Set(float64(cert.Leaf.NotAfter.Unix()))
	c.log.Info("the controller has issued a certificate", "until", cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func (c *Client) ask(ctx context.Context) (*tls.Certificate, error) {
	token, err := os.ReadFile(c.o.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("the pod's token: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(Request{CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))})
	if err != nil {
		return nil, err
	}
	answer, err := c.post(ctx, strings.TrimSpace(string(token)), body)
	if err != nil {
		return nil, err
	}
	return certificate(answer, key)
}

// refused is an answer of the controller.
type refused struct{ status, reason string }

func (r *refused) Error() string {
	return fmt.Sprintf("the controller refuses (%s): %s", r.status, r.reason)
}

// post asks for a certificate. With the one that there is, the controller tells us from
// others at our address, for whom it may have had enough of requests. A certificate that
// it doesn't take is left out: the token is what counts.
func (c *Client) post(ctx context.Context, token string, body []byte) (*Response, error) {
	config, err := c.trust()
	if err != nil {
		return nil, err
	}
	if cert := c.valid(); cert != nil {
		known := config.Clone()
		known.Certificates = []tls.Certificate{*cert}
		answer, err := c.send(ctx, known, token, body)
		if no := (*refused)(nil); err == nil || errors.As(err, &no) || ctx.Err() != nil {
			return answer, err
		}
	}
	return c.send(ctx, config, token, body)
}

// valid returns our certificate, if there is one that is not over.
func (c *Client) valid() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || !time.Now().Before(c.current.Leaf.NotAfter) {
		return nil
	}
	return c.current
}

// send sends one request over a connection of its own. Requests are rare, and a new
// connection reaches any controller that is there.
func (c *Client) send(ctx context.Context, config *tls.Config, token string, body []byte) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.o.API+Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		var p Problem
		if json.Unmarshal(raw, &p) != nil || p.Error == "" {
			p.Error = "no reason given"
		}
		return nil, &refused{status: resp.Status, reason: p.Error}
	}
	answer := &Response{}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, fmt.Errorf("the controller's answer: %w", err)
	}
	return answer, nil
}

// certificate reads an answer to a request for a key.
func certificate(answer *Response, key *ecdsa.PrivateKey) (*tls.Certificate, error) {
	cert := &tls.Certificate{PrivateKey: key}
	rest := []byte(answer.Certificate)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	if len(cert.Certificate) == 0 {
		return nil, fmt.Errorf("the controller's answer has no certificate")
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("the controller's answer: %w", err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, fmt.Errorf("the controller's answer has a certificate for another key")
	}
	if !leaf.NotAfter.After(time.Now()) {
		return nil, fmt.Errorf("the controller's answer has a certificate that ended at %s: do the clocks agree?",
			leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	cert.Leaf = leaf
	return cert, nil
}
