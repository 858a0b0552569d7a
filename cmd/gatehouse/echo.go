package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

func newEcho() *cobra.Command {
	var listen, tcp, udp []string
	cmd := &cobra.Command{
		Use:   "echo [--listen|--tcp|--udp NAME=ADDRESS]... [-- COMMAND ARG...]",
		Short: "Run a small backend that answers with what it was asked",
		Long: `Run a small backend for trying out routes. It speaks HTTP/1.1, HTTP/2 without
TLS, WebSocket and gRPC, and answers with the request that it got, as JSON; a gRPC
call of any service and method gets it in a google.protobuf.StringValue. Backends
of TCP and UDP answer each line or datagram with their name and what they got.

A COMMAND is run once the backends listen; they end with it.`,
		Example: `  gatehouse echo --listen v1=127.0.0.1:3001 --listen v2=127.0.0.1:3002
  gatehouse echo --tcp db=127.0.0.1:3003 --udp dns=127.0.0.1:3004
  gatehouse echo --listen 127.0.0.1:3000 -- gatehouse run routes.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usageError{fmt.Errorf("%q: a command to run stands after --", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// A command of its own decides when it stops; until then it is answered.
			ctx, stop := cmd.Context(), context.CancelFunc(func() {})
			if len(args) > 0 {
				ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
			}
			defer stop()
			group, ctx := errgroup.WithContext(ctx)
			if len(tcp)+len(udp) > 0 && !cmd.Flags().Changed("listen") {
				listen = nil
			}
			var servers []server
			for _, k := range []struct {
				name   string
				all    []string
				listen func(context.Context, echo.Options) (server, error)
			}{{"", listen, listenHTTP}, {"tcp ", tcp, listenTCP}, {"udp ", udp, listenUDP}} {
				opened, err := backends(ctx, k.all, k.listen)
				if err != nil {
					return err
				}
				servers = append(servers, opened...)
				if len(args) == 0 {
					for _, b := range k.all {
						fmt.Fprintf(cmd.ErrOrStderr(), "echo %s%s\n", k.name, b)
					}
				}
			}
			for _, s := range servers {
				group.Go(func() error { return s.Run(ctx) })
			}
			if len(args) == 0 {
				return group.Wait()
			}
			err := attend(args, hurried(ctx))
			stop()
			return errors.Join(err, group.Wait())
		},
	}
	cmd.Flags().StringArrayVar(&listen, "listen", []string{"echo=127.0.0.1:3000"}, "name and address of a backend of HTTP and gRPC; repeatable")
	cmd.Flags().StringArrayVar(&tcp, "tcp", nil, "name and address of a backend that echoes lines over TCP; repeatable")
	cmd.Flags().StringArrayVar(&udp, "udp", nil, "name and address of a backend that echoes datagrams over UDP; repeatable")
	return cmd
}

// server is a backend of any protocol.
type server interface {
	Run(ctx context.Context) error
}

func listenHTTP(ctx context.Context, o echo.Options) (server, error) { return echo.New(ctx, o) }
func listenTCP(ctx context.Context, o echo.Options) (server, error)  { return echo.NewTCP(ctx, o) }
func listenUDP(ctx context.Context, o echo.Options) (server, error)  { return echo.NewUDP(ctx, o) }

// backends opens every address, so that a port that is taken is told before
// anything runs.
func backends(ctx context.Context, all []string, listen func(context.Context, echo.Options) (server, error)) ([]server, error) {
	var servers []server
	for _, b := range all {
		name, addr, ok := strings.Cut(b, "=")
		if !ok {
			name, addr = "echo", b
		}
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return nil, usageError{fmt.Errorf("%q is not [NAME=]HOST:PORT, such as v1=127.0.0.1:3001", b)}
		}
		s, err := listen(ctx, echo.Options{
			Listen: []string{addr}, Name: name, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		})
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("the backend %s can't listen on %s: another program has that port; stop it (on Linux `ss -lntup` names it)", name, addr)
		}
		if err != nil {
			return nil, err
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// childError is the failure of a command that was run for the user, who has seen
// what it said.
type childError struct{ code int }

func (e childError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// attend runs a command until it ends. The terminal's signals reach it by
// themselves; those that are sent to this process are passed on.
func attend(args []string, again <-chan struct{}) error {
	child := exec.Command(args[0], args[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return childError{exit.ExitCode()}
			}
			return err
		case <-again: // the terminal's second Ctrl-C is the command's matter too
		case s := <-signals:
			_ = child.Process.Signal(s) // it may have ended just now
		}
	}
}
