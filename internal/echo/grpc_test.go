package echo

import (
	"encoding/json"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestGRPC(t *testing.T) {
	_, addr := start(t, nil)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("shop.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// call sends metadata in pairs and returns the answer.
	call := func(pairs ...string) (Answer, metadata.MD, error) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), pairs...)
		var reply wrapperspb.StringValue
		var header metadata.MD
		var a Answer
		err := conn.Invoke(ctx, "/shop.v1.Cart/Add", wrapperspb.String("hello"), &reply, grpc.Header(&header))
		if err != nil {
			return a, header, err
		}
		return a, header, json.Unmarshal([]byte(reply.GetValue()), &a)
	}
	a, header, err := call("x-test", "on", "echo-header", "X-Back: yes")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "v1" || a.Host != "shop.test" || a.Path != "/shop.v1.Cart/Add" || a.Body != "hello" || a.Headers.Get("X-Test") != "on" {
		t.Errorf("answer: %+v", a)
	}
	if got := header.Get("x-back"); len(got) != 1 || got[0] != "yes" {
		t.Errorf("metadata of the answer: %v", header)
	}
	for _, code := range []string{"Unavailable", "14"} {
		if _, _, err := call("echo-code", code); status.Code(err) != codes.Unavailable {
			t.Errorf("code %s: %v", code, err)
		}
	}
	for i, want := range []codes.Code{codes.Aborted, codes.OK} {
		if _, _, err := call("echo-code", "ABORTED", "echo-times", "1", "echo-key", "k"); status.Code(err) != want {
			t.Errorf("call %d: %v, want %s", i+1, err, want)
		}
	}
	if _, _, err := call("echo-code", "NONSENSE"); status.Code(err) == codes.OK {
		t.Error("an unknown code is taken")
	}
}
