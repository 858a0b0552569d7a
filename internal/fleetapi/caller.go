package fleetapi

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
)

// The API server says in a ConfigMap how extensions know it.
const (
	CallerNamespace = "kube-system"
	CallerConfigMap = "extension-apiserver-authentication"
)

// Caller knows the API server by the certificate that it shows, and takes its word for who asks.
type Caller struct {
	read func(context.Context) (map[string]string, error)
	log  *slog.Logger

	mu sync.Mutex
	callerConfig
}

// callerConfig is how the API server is known. The zero value is nobody.
type callerConfig struct {
	pool                     *x509.CertPool
	names                    []string // of certificates; empty for all of the authority
	user, uid, groups, extra []string // headers
}

// NewCaller returns one who knows nobody before Run. read reads the data of the ConfigMap.
func NewCaller(read func(context.Context) (map[string]string, error), log *slog.Logger) *Caller {
	return &Caller{read: read, log: log}
}

const (
	callerInterval = 30 * time.Second
	callerRetry    = 2 * time.Second
	callerTimeout  = 10 * time.Second
)

// Run follows the ConfigMap until ctx ends. While it can't be read, what was read last counts.
func (c *Caller) Run(ctx context.Context) error {
	failed := ""
	for {
		wait := callerInterval
		if err := c.follow(ctx); err != nil && ctx.Err() == nil {
			wait = callerRetry
			if err.Error() != failed {
				c.log.Error("who may send requests for proxies is not known; trying again", "object", "ConfigMap "+CallerNamespace+"/"+CallerConfigMap, "error", err)
			}
			failed = err.Error()
		} else {
			failed = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (c *Caller) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callerTimeout)
	defer cancel()
	data, err := c.read(ctx)
	if err != nil {
		return err
	}
	config, err := parseCaller(data)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callerConfig = config
	return err
}

// parseCaller reads the ConfigMap. With an error it is nobody.
func parseCaller(data map[string]string) (callerConfig, error) {
	authority := []byte(data["requestheader-client-ca-file"])
	c := callerConfig{pool: x509.NewCertPool()}
	if !c.pool.AppendCertsFromPEM(authority) {
		return callerConfig{}, errors.New("it has no requestheader-client-ca-file: the API server's aggregation layer is off")
	}
	for field, into := range map[string]*[]string{
		"requestheader-allowed-names":        &c.names,
		"requestheader-username-headers":     &c.user,
		"requestheader-uid-headers":          &c.uid,
		"requestheader-group-headers":        &c.groups,
		"requestheader-extra-headers-prefix": &c.extra,
	} {
		if text := data[field]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return callerConfig{}, fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	// Anybody with a certificate for the API server could claim to be anybody here.
	if len(c.names) == 0 && haveOneInCommon(authority, []byte(data["client-ca-file"])) {
		return callerConfig{}, errors.New("its requestheader-client-ca-file is the authority of clients too, and requestheader-allowed-names is empty: give the API server another --requestheader-client-ca-file, or --requestheader-allowed-names")
	}
	return c, nil
}

// haveOneInCommon reports whether an authority is in both of two lists of certificates.
func haveOneInCommon(a, b []byte) bool {
	authorities := func(text []byte) (found []*x509.Certificate) {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				found = append(found, c)
			}
		}
		return found
	}
	others := authorities(b)
	return slices.ContainsFunc(authorities(a), func(c *x509.Certificate) bool {
		return slices.ContainsFunc(others, func(o *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, o.RawSubject) || bytes.Equal(c.RawSubjectPublicKeyInfo, o.RawSubjectPublicKeyInfo)
		})
	})
}

func (c *Caller) known() callerConfig {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callerConfig
}

// Authorities are those of the certificates that the API server shows; nil while they are not known.
func (c *Caller) Authorities() *x509.CertPool { return c.known().pool }

// user returns who asks; nil where the request is not the API server's.
func (c *Caller) asks(r *http.Request) (user.Info, error) {
	known := c.known()
	if known.pool == nil || r.TLS == nil {
		return nil, nil
	}
	verify := func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: known.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
	}
	is := func(values []string) headerrequest.StringSliceProvider {
		return headerrequest.StaticStringSlice(values)
	}
	answer, ok, err := headerrequest.NewDynamicVerifyOptionsSecure(verify,
		is(known.names), is(known.user), is(known.uid), is(known.groups), is(known.extra)).AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, err
	}
	return answer.User, nil
}
