package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// dialPod connects to a port on a pod's loopback, as `kubectl port-forward` does and by the same
// right (create pods/portforward), but without a port here that others could use.
func dialPod(config *rest.Config, namespace, pod string, port int) (net.Conn, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	conn, _, err := portforward.NewFallbackDialerForStreaming(tunnel, dialer, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failures, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = failures.Close() // we only read
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return forwarded(conn, data, failures), nil
}

// forwarded is a connection that has deadlines, which streams have not.
func forwarded(conn httpstream.Connection, data, failures io.ReadWriter) net.Conn {
	ours, theirs := net.Pipe()
	end := func() {
		_ = theirs.Close()
		_ = conn.Close()
	}
	f := &forwardedConn{Conn: ours, failed: make(chan error, 1)}
	go func() {
		if text, _ := io.ReadAll(io.LimitReader(failures, 1<<10)); len(text) > 0 {
			f.failed <- errors.New(string(text))
			end()
		}
	}()
	go func() { defer end(); _, _ = io.Copy(theirs, data) }()
	go func() { defer end(); _, _ = io.Copy(data, theirs) }()
	return f
}

// forwardedConn says why the other side can't be reached, if it was told.
type forwardedConn struct {
	net.Conn
	failed chan error
}

func (c *forwardedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		select {
		case why := <-c.failed:
			c.failed <- why
			return n, why
		default:
		}
	}
	return n, err
}

// adminClient asks an admin interface over one connection at a time. Whatever is to be dialled
// is dialled by dial.
func adminClient(dial func(context.Context) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxConnsPerHost: 1,
	}}
}
