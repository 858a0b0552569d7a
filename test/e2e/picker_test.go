//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// pickerBackend speaks the endpoint picker protocol of the Gateway API's inference extension.
var pickerBackend = backendKind{"picker", "TCP", 9002, listenPicker, serverTLS}

// picker names the endpoint that a request asks for in x-case-pick, as soon as it has the whole request: a real one reads
// the model's name in the body. It tells the client which endpoint has served.
type picker struct {
	extprocv3.UnimplementedExternalProcessorServer
	grpcServer
}

// grpcServer serves what is registered at server on some listeners.
type grpcServer struct {
	server    *grpc.Server
	listeners []net.Listener
}

func (s *grpcServer) listen(ctx context.Context, addresses []string) error {
	for _, address := range addresses {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

func (s *grpcServer) Run(context.Context) error {
	failures := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		go func() { failures <- s.server.Serve(l) }()
	}
	return <-failures
}

func (s *grpcServer) Addresses() []net.Addr {
	out := make([]net.Addr, len(s.listeners))
	for i, l := range s.listeners {
		out[i] = l.Addr()
	}
	return out
}

func listenPicker(ctx context.Context, o echo.Options) (echoServer, error) {
	config := o.TLS.Clone()
	config.ClientAuth = tls.NoClientCert
	s := &picker{grpcServer: grpcServer{server: grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))}}
	extprocv3.RegisterExternalProcessorServer(s.server, s)
	return s, s.listen(ctx, o.Listen)
}

func (s *picker) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	var asked string
	var body []byte
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		var answers []*extprocv3.ProcessingResponse
		switch r := r.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_RequestHeaders:
			for _, h := range r.RequestHeaders.GetHeaders().GetHeaders() {
				if h.GetKey() == "x-case-pick" {
					asked = string(h.GetRawValue())
				}
			}
			if asked == "end" {
				return nil
			}
			if r.RequestHeaders.GetEndOfStream() {
				answers = append(answers, pick(asked))
			}
		case *extprocv3.ProcessingRequest_RequestBody:
			body = append(body, r.RequestBody.GetBody()...)
			if r.RequestBody.GetEndOfStream() {
				answers = append(answers, pick(asked), &extprocv3.ProcessingResponse{
					Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: streamed(body, true)},
				})
			}
		case *extprocv3.ProcessingRequest_RequestTrailers:
			answers = append(answers, pick(asked), &extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: streamed(body, false)},
			}, &extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_RequestTrailers{RequestTrailers: &extprocv3.TrailersResponse{}},
			})
		}
		switch body := r.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_ResponseHeaders:
			served := r.GetMetadataContext().GetFilterMetadata()["envoy.lb"].GetFields()["x-gateway-destination-endpoint-served"].GetStringValue()
			answers = append(answers, &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
				ResponseHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{HeaderMutation: &extprocv3.HeaderMutation{
					SetHeaders: []*corev3.HeaderValueOption{rawHeader("x-case-served", served)},
				}}},
			}})
		case *extprocv3.ProcessingRequest_ResponseBody:
			answers = append(answers, &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
				ResponseBody: streamed(body.ResponseBody.GetBody(), body.ResponseBody.GetEndOfStream()),
			}})
		case *extprocv3.ProcessingRequest_ResponseTrailers:
			answers = append(answers, &extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extprocv3.TrailersResponse{}},
			})
		}
		for _, answer := range answers {
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

// pick is the answer to a request that asks for an endpoint.
func pick(endpoint string) *extprocv3.ProcessingResponse {
	endpoint, slow := strings.CutPrefix(endpoint, "slow ")
	if slow {
		time.Sleep(time.Second)
	}
	common := &extprocv3.CommonResponse{}
	out := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{Response: common},
	}}
	switch endpoint {
	case "nothing", "":
	case "shed":
		out.Response = &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode_TooManyRequests},
		}}
	default:
		const key = "x-gateway-destination-endpoint"
		common.HeaderMutation = &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{rawHeader(key, endpoint)}}
		out.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
			"envoy.lb": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewStringValue(endpoint)}}),
		}}
	}
	return out
}

func streamed(body []byte, end bool) *extprocv3.BodyResponse {
	return &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{
		Mutation: &extprocv3.BodyMutation_StreamedResponse{StreamedResponse: &extprocv3.StreamedBodyResponse{Body: body, EndOfStream: end}},
	}}}
}

func rawHeader(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: name, RawValue: []byte(value)}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
