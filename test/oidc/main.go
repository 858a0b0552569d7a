// Command oidc is an OpenID Provider to log in at in tests: that of zitadel/oidc, which is certified,
// with its example's storage and its one user.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// provider gives out access tokens that live as long as a test wants.
type provider struct {
	*storage.Storage
	life time.Duration
}

func (p provider) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	id, _, err := p.Storage.CreateAccessToken(ctx, r)
	return id, time.Now().Add(p.life), err
}

func (p provider) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, current string) (access, refresh string, expiration time.Time, err error) {
	access, refresh, _, err = p.Storage.CreateAccessAndRefreshTokens(ctx, r, current)
	return access, refresh, time.Now().Add(p.life), err
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9998", "`address` to listen on")
	client := flag.String("client", "web", "the client's `id`")
	secret := flag.String("secret", "secret", "the client's `secret`")
	redirects := flag.String("redirects", "", "`URLs` to which people may be sent back, with commas between")
	life := flag.Duration("life", 5*time.Minute, "how long access tokens live")
	flag.Parse()
	issuer := "http://" + *listen
	s := provider{storage.NewStorageWithClients(storage.NewUserStore(issuer), map[string]*storage.Client{
		*client: storage.WebClient(*client, *secret, strings.Split(*redirects, ",")...),
	}), *life}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	handler := exampleop.SetupServer(issuer, s, log, false)
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("listening at", issuer)
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
