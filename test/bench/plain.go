package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/test/child"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// The turns of plain-envoy: as many of ours as of the plain one, one after the other.
const (
	plainRounds   = 10
	plainClients  = 8    // each with a connection of its own, a new one in each turn
	plainRequests = 1000 // of each client in a turn
	plainWarmup   = 100  // before that, which are not counted
)

// plainConfig is an Envoy that does what the one route of ours does, and is as it comes in
// everything else.
const plainConfig = `{
  "static_resources": {
    "listeners": [{
      "name": "http",
      "address": {"socket_address": {"address": "127.0.0.1", "port_value": %[1]d}},
      "filter_chains": [{"filters": [{
        "name": "http",
        "typed_config": {
          "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          "stat_prefix": "http",
          "http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
          "route_config": {"virtual_hosts": [{"name": "h", "domains": ["%[2]s"], "routes": [{
            "match": {"prefix": "/"},
            "route": {"cluster": "backend"},
            "response_headers_to_add": [{"header": {"key": "version", "value": "0"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]
          }]}]}
        }
      }]}]
    }],
    "clusters": [{
      "name": "backend",
      "type": "STATIC",
      "load_assignment": {"cluster_name": "backend", "endpoints": [{"lb_endpoints": [{"endpoint": {
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": %[3]d}}
      }}]}]}
    }]
  }
}`

// side is one of the two Envoys that are asked in turns.
type side struct {
	address string
	pid     int
	used    time.Duration
	times   []time.Duration
}

// overPlain measures what a request costs of our Envoy over a plain one with one listener, one route and the same
// backend and number of workers.
func (b *real) overPlain(ctx context.Context) error {
	return b.with(ctx, 1, func(ctx context.Context, s *standalone, entries []entry) (err error) {
		if err := s.start(); err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		ours := &side{address: s.address()}
		if ours.pid, err = s.envoyPID(); err != nil {
			return err
		}
		binary, err := envoyBinary(ours.pid)
		if err != nil {
			return err
		}
		free, err := port.Free()
		if err != nil {
			return err
		}
		file := filepath.Join(s.root, "plain.json")
		if err := os.WriteFile(file, fmt.Appendf(nil, plainConfig, free, entries[0].host(), entries[0].port), 0o600); err != nil {
			return err
		}
		alone, err := b.startEnvoy(binary, file, filepath.Join(s.root, "plain.log"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, alone.stop()) }()
		plain := &side{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(free)), pid: alone.pid()}

		for _, of := range []*side{ours, plain} {
			if err := alone.serves(ctx, of.address, entries[0].host()); err != nil {
				return err
			}
		}
		for range plainRounds {
			for _, of := range []*side{ours, plain} {
				if err := of.turn(ctx, entries[0].host(), plainClients, plainRequests); err != nil {
					return err
				}
			}
		}
		const requests = plainRounds * plainClients * plainRequests
		ourTime, plainTime := sorted(ours.times), sorted(plain.times)
		for _, x := range []struct {
			metric       string
			ours, plains float64
		}{
			{"envoy_cpu_us", float64(ours.used.Microseconds()) / requests, float64(plain.used.Microseconds()) / requests},
			{"p50_ms", milliseconds(percentile(ourTime, .5)), milliseconds(percentile(plainTime, .5))},
			{"p99_ms", milliseconds(percentile(ourTime, .99)), milliseconds(percentile(plainTime, .99))},
		} {
			b.report.add(plainEnvoy, 1, x.metric, x.ours)
			b.report.add(plainEnvoy, 1, "plain_"+x.metric, x.plains)
			b.report.add(plainEnvoy, 1, x.metric+"_over_plain", x.ours/x.plains)
		}
		return nil
	})
}

// turn asks by all clients at once, so often each.
func (of *side) turn(ctx context.Context, host string, connections, requests int) error {
	clients := make([]client, connections)
	ask := func(requests int, took func(int, time.Duration)) error {
		group, ctx := errgroup.WithContext(ctx)
		for i := range clients {
			c := &clients[i]
			c.Address = of.address
			group.Go(func() error {
				for range requests {
					begin := time.Now()
					a, err := c.get(host)
					if err = errors.Join(err, ctx.Err()); err != nil {
						return err
					}
					if a.status != http.StatusOK {
						return fmt.Errorf("%s answers %d", of.address, a.status)
					}
					took(i, time.Since(begin))
				}
				return nil
			})
		}
		return group.Wait()
	}
	defer func() {
		for i := range clients {
			clients[i].Close()
		}
	}()
	if err := ask(plainWarmup, func(int, time.Duration) {}); err != nil {
		return err
	}
	before, err := processCPU(of.pid)
	if err != nil {
		return err
	}
	times := make([][]time.Duration, connections)
	if err := ask(requests, func(i int, d time.Duration) { times[i] = append(times[i], d) }); err != nil {
		return err
	}
	after, err := processCPU(of.pid)
	if err != nil {
		return err
	}
	of.used += after - before
	for _, t := range times {
		of.times = append(of.times, t...)
	}
	return nil
}

// loneEnvoy is an Envoy without a control plane.
type loneEnvoy struct {
	cmd   *exec.Cmd
	ended <-chan struct{}
	log   *os.File
}

// envoyBinary returns the program of an Envoy that runs.
func envoyBinary(pid int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) }

// startEnvoy starts an Envoy with a configuration of its own.
func (b *real) startEnvoy(binary, config, log string) (*loneEnvoy, error) {
	e := &loneEnvoy{}
	var err error
	if e.log, err = os.Create(log); err != nil { //nolint:gosec // a directory of our own
		return nil, err
	}
	e.cmd = exec.Command(binary, "--config-path", config, "--disable-hot-restart",
		"--log-level", "error", "--concurrency", strconv.Itoa(b.concurrency))
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if e.ended, err = child.Start(e.cmd, syscall.SIGKILL); err != nil {
		return nil, errors.Join(err, e.log.Close())
	}
	return e, nil
}

func (e *loneEnvoy) pid() int { return e.cmd.Process.Pid }

// serves waits until a host is served at an address.
func (e *loneEnvoy) serves(ctx context.Context, address, host string) error {
	probe := clientOf(address)
	defer probe.Close()
	err := until(ctx, host+" to be served at "+address, time.Minute, 2*time.Millisecond, func() (bool, error) {
		a, err := probe.get(host)
		return err == nil && a.status == http.StatusOK, err
	})
	if err != nil {
		said, _ := os.ReadFile(e.log.Name())
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

func (e *loneEnvoy) stop() error {
	_ = e.cmd.Process.Kill()
	<-e.ended
	return e.log.Close()
}
