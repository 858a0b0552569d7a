package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit"
	"github.com/gatehouse-dev/gatehouse/internal/trust"
)

// redisFlags say which Redis keeps the counts. Passwords are in files, since arguments and
// environments can be read by others.
type redisFlags struct {
	address                         string
	credentials, caFile, serverName string
	tls                             bool
}

func (f *redisFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.address, "redis", "", "HOST:PORT of a Redis or Valkey that keeps the counts (default: the process's memory)")
	fl.StringVar(&f.credentials, "redis-credentials", "", "directory with the file password, and with the file username unless the user is Redis' default one")
	fl.BoolVar(&f.tls, "redis-tls", false, "connect to Redis by TLS")
	fl.StringVar(&f.caFile, "redis-ca-file", "", "certificates of the authority of Redis, in PEM (default: the system's)")
	fl.StringVar(&f.serverName, "redis-server-name", "", "name that the certificate of Redis must be for (default: the host of --redis)")
}

func (f *redisFlags) check() error {
	if f.address == "" {
		for name, set := range map[string]bool{
			"redis-credentials": f.credentials != "", "redis-tls": f.tls, "redis-ca-file": f.caFile != "", "redis-server-name": f.serverName != "",
		} {
			if set {
				return usageError{fmt.Errorf("--%s: there is no --redis that it is for", name)}
			}
		}
		return nil
	}
	host, port, err := net.SplitHostPort(f.address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil || number == 0 || !isHost(host) {
		return usageError{fmt.Errorf("--redis: %q is not HOST:PORT, such as redis.example:6379", f.address)}
	}
	if !f.tls && (f.caFile != "" || f.serverName != "") {
		return usageError{errors.New("--redis-tls: it is needed with --redis-ca-file and --redis-server-name")}
	}
	if f.serverName != "" && !isHost(f.serverName) {
		return usageError{fmt.Errorf("--redis-server-name: %q is neither an IP address nor a DNS name", f.serverName)}
	}
	return nil
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || len(validation.IsDNS1123Subdomain(text)) == 0
}

// store returns where the requests of a Gateway are counted.
func (f *redisFlags) store(gateway object.Name) (ratelimit.Store, error) {
	if f.address == "" {
		return ratelimit.NewMemory(), nil
	}
	options := ratelimit.RedisOptions{Gateway: gateway, Addresses: []string{f.address}}
	var err error
	if f.credentials != "" {
		if options.Credentials, err = ratelimit.CredentialsIn(f.credentials); err != nil {
			return nil, fmt.Errorf("--redis-credentials: %w", err)
		}
	}
	if f.tls {
		name := f.serverName
		if name == "" {
			name, _, _ = net.SplitHostPort(f.address)
		}
		if options.TLS, err = trust.Server(f.caFile, name); err != nil {
			return nil, fmt.Errorf("--redis-ca-file: %w", err)
		}
	}
	return ratelimit.NewRedis(options)
}
