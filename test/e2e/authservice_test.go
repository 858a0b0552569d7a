//go:build linux

package e2e

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// authBackend speaks the gRPC protocol of authorization services.
var authBackend = backendKind{"auth", "TCP", 9000, listenAuth, nil}

// authServer permits requests unless their query says otherwise: auth=deny is
// answered with 401, auth=fail with an error. What it saw goes to the backend in
// headers, together with headers that must not get through.
type authServer struct {
	authv3.UnimplementedAuthorizationServer
	grpcServer
	name string
}

func listenAuth(ctx context.Context, o echo.Options) (echoServer, error) {
	s := &authServer{name: o.Name, grpcServer: grpcServer{server: grpc.NewServer()}}
	authv3.RegisterAuthorizationServer(s.server, s)
	return s, s.listen(ctx, o.Listen)
}

func (s *authServer) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	request := r.GetAttributes().GetRequest().GetHttp()
	u, err := url.ParseRequestURI(request.GetPath())
	if err != nil {
		return nil, err
	}
	switch u.Query().Get("auth") {
	case "fail":
		return nil, errors.New("asked to fail")
	case "deny":
		return denied(s.name), nil
	}
	var seen []string
	for _, name := range slices.Sorted(maps.Keys(request.GetHeaders())) {
		if strings.HasPrefix(name, "x-case-") {
			seen = append(seen, name)
		}
	}
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(grpccodes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{
			Headers: []*corev3.HeaderValueOption{
				header("x-auth-by", s.name),
				header("x-auth-host", request.GetHost()),
				header("x-auth-path", u.Path),
				header("x-auth-headers", strings.Join(seen, " ")),
				header("x-auth-body", strconv.Itoa(len(request.GetBody()))),
				header("content-length", "1"),
				header("x-envoy-upstream-rq-timeout-ms", "1"),
			},
		}},
	}, nil
}

// denied is the answer of a service that refuses.
func denied(by string) *authv3.CheckResponse {
	return &authv3.CheckResponse{
		Status: &status.Status{Code: int32(grpccodes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode_Unauthorized},
			Headers: []*corev3.HeaderValueOption{header("Www-Authenticate", "Basic")},
			Body:    by + " says no",
		}},
	}
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
