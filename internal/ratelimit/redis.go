package ratelimit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// How long a request waits for the store: to connect, for a free connection, for an
	// answer. Proxies wait for less.
	redisTimeout = 500 * time.Millisecond
	// Connections to a server. A script takes some 20 us there, so that some connections
	// keep it busy.
	redisConnections = 32
)

//go:embed redis.lua
var redisSource string

var redisScript = redis.NewScript(redisSource)

// The library writes lines of its own about connections. What fails is in our logs already.
var silenceRedis = sync.OnceFunc(logging.Disable)

// RedisOptions say where counts are kept.
type RedisOptions struct {
	// Gateway is whose counts they are. It is part of each key.
	Gateway object.Name
	// Addresses are host:port of one server, or of some of a cluster's.
	Addresses []string
	// Cluster says that the addresses are of a Redis Cluster. The counts of one Gateway are
	// on one of its nodes.
	Cluster bool
	// Credentials returns user and password, for each new connection; either may be empty.
	// Nil if the server asks for none.
	Credentials func() (user, password string)
	// TLS is nil for a connection without it.
	TLS *tls.Config

	timeout time.Duration // 0 is redisTimeout
}

// Redis is a Store in Redis or Valkey. It connects again by itself. The server's memory is
// bounded by its own maxmemory; a count takes some 130 bytes of it.
//
// A request is one call of a script, which is atomic. It is never sent twice to a single
// server: who knows whether it was charged? In a cluster, one whose node has failed may be.
type Redis struct {
	client    redis.UniversalClient
	prefix    string
	addresses string // for people
}

// NewRedis returns a store. It does not connect before it is used, and a server that is
// not there is an error of Take.
func NewRedis(o RedisOptions) (*Redis, error) {
	if len(o.Addresses) == 0 {
		return nil, errors.New("no address of Redis is given")
	}
	if len(o.Addresses) > 1 && !o.Cluster {
		return nil, errors.New("several addresses of Redis are those of a cluster")
	}
	silenceRedis()
	timeout := cmp.Or(o.timeout, redisTimeout)
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:               o.Addresses,
		IsClusterMode:       o.Cluster,
		CredentialsProvider: o.Credentials,
		TLSConfig:           o.TLS,
		MaxRetries:          -1,
		DialTimeout:         timeout,
		DialerRetries:       1,
		ReadTimeout:         timeout,
		WriteTimeout:        timeout,
		PoolTimeout:         timeout,
		PoolSize:            redisConnections,
		// Fewer commands that a user's access list has to permit.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return &Redis{client: client, prefix: redisPrefix(o.Gateway), addresses: strings.Join(o.Addresses, ", ")}, nil
}

// redisPrefix returns what a Gateway's keys begin with. The braces are a hash tag: a cluster
// keeps all keys with one on one node, as a script needs.
func redisPrefix(gateway object.Name) string {
	sum := sha256.Sum256([]byte(gateway.String()))
	return "gatehouse:{" + base64.RawURLEncoding.EncodeToString(sum[:18]) + "}:"
}

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }

// Take does not end with the context: what was used must be charged though its proxy has
// gone, and a connection that is given up in the middle of an answer has to be made anew,
// just when the server is slow. It ends after redisTimeout for each step.
func (r *Redis) Take(ctx context.Context, hits []Hit, verdicts []Verdict) (bool, error) {
	keys := make([]string, len(hits))
	args := make([]any, 0, 4*len(hits))
	for i := range hits {
		h := &hits[i]
		keys[i] = r.prefix + base64.RawURLEncoding.EncodeToString(h.Count[:])
		args = append(args, h.N, h.Rate.Limit, h.Rate.Window.Milliseconds(), uint8(h.Mode))
	}
	answer, err := redisScript.Run(context.WithoutCancel(ctx), r.client, keys, args...).Int64Slice()
	if err != nil {
		return false, fmt.Errorf("count in Redis at %s: %w", r.addresses, err)
	}
	if len(answer) != 1+3*len(hits) {
		return false, fmt.Errorf("count in Redis at %s: %d numbers for %d hits", r.addresses, len(answer), len(hits))
	}
	for i := range hits {
		a := answer[1+3*i:]
		verdicts[i] = Verdict{
			Over:  a[0] != 0,
			Count: uint32(min(max(a[1], 0), math.MaxUint32)),
			Reset: time.Duration(a[2]) * time.Millisecond,
		}
	}
	return answer[0] != 0, nil
}
