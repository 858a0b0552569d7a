// Command oidc is an OpenID Provider to log in at in tests: that of zitadel/oidc, which is certified,
// with its example's storage and its one user.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
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

// posted has a provider take secrets of clients in bodies alone, and say so.
func posted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != oidc.DiscoveryEndpoint {
			r.Header.Del("Authorization")
			handler.ServeHTTP(w, r)
			return
		}
		answer, config := httptest.NewRecorder(), map[string]any{}
		handler.ServeHTTP(answer, r)
		if err := json.Unmarshal(answer.Body.Bytes(), &config); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		config["token_endpoint_auth_methods_supported"] = []oidc.AuthMethod{oidc.AuthMethodPost}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(config)
	})
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9998", "`address` to listen on")
	client := flag.String("client", "web", "the client's `id`")
	secret := flag.String("secret", "secret", "the client's `secret`")
	redirects := flag.String("redirects", "", "`URLs` to which people may be sent back, with commas between")
	life := flag.Duration("life", 5*time.Minute, "how long access tokens live")
	post := flag.Bool("post", false, "take the client's secret in bodies alone")
	flag.Parse()
	issuer := "http://" + *listen
	s := provider{storage.NewStorageWithClients(storage.NewUserStore(issuer), map[string]*storage.Client{
		*client: storage.WebClient(*client, *secret, strings.Split(*redirects, ",")...),
	}), *life}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var handler http.Handler = exampleop.SetupServer(issuer, s, log, false)
	if *post {
		handler = posted(handler)
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("listening at", issuer)
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
