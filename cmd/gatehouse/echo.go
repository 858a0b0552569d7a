package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

func newEcho() *cobra.Command {
	var listen []string
	cmd := &cobra.Command{
		Use:   "echo --listen NAME=ADDRESS...",
		Short: "Run a small backend that answers with what it was asked",
		Long: `Run a small backend for trying out routes. It speaks HTTP/1.1, HTTP/2 without
TLS and WebSocket, and answers with the request that it got, as JSON.`,
		Example: "  gatehouse echo --listen v1=127.0.0.1:3001 --listen v2=127.0.0.1:3002",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			group, ctx := errgroup.WithContext(cmd.Context())
			for _, l := range listen {
				name, addr, ok := strings.Cut(l, "=")
				if !ok {
					name, addr = "echo", l
				}
				server, err := echo.New(ctx, echo.Options{
					Listen: []string{addr}, Name: name, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
				})
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "echo %s on %s\n", name, addr)
				group.Go(func() error { return server.Run(ctx) })
			}
			return group.Wait()
		},
	}
	cmd.Flags().StringArrayVar(&listen, "listen", []string{"echo=127.0.0.1:3000"}, "name and address to answer as and on; repeatable")
	return cmd
}
