package remote

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// reports are the statuses that the server is to be told.
type reports struct {
	wake chan struct{}

	mu      sync.Mutex
	known   map[object.Key]*discoveryv3.Resource
	pending map[object.Key]struct{}
	// gone are some of which there is nothing to say any more: whether the server has heard so before a connection broke
	// nobody knows, so that it is said again.
	gone map[object.Key]struct{}
}

// maxGone bounds how many are said again.
const maxGone = 10_000

func newReports() *reports {
	return &reports{wake: make(chan struct{}, 1), known: map[object.Key]*discoveryv3.Resource{}, pending: map[object.Key]struct{}{}, gone: map[object.Key]struct{}{}}
}

// Report says what the status of an object of the server is, which nobody changes any more; nil that there is nothing to say
// of it here. It doesn't wait, and the last one wins. Servers that take none are told none.
func (s *Source) Report(k object.Key, status any) {
	r := s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known[k]
	if status == nil {
		if was == nil {
			return
		}
		if delete(r.known, k); len(r.gone) < maxGone {
			r.gone[k] = struct{}{}
		}
	} else {
		now, err := wire.StatusResource(k.Name, status)
		if err != nil || proto.Equal(now, was) {
			return
		}
		r.known[k] = now
		delete(r.gone, k)
	}
	r.pending[k] = struct{}{}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ForgetReports takes back nothing that the server has been told, and tells it no more: another process does.
func (s *Source) ForgetReports() {
	r := s.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
	clear(r.pending)
	clear(r.gone)
}

// reportAgain is how soon a server is told anew that has ended the call alone.
const reportAgain = 5 * time.Second

// report tells the server statuses until ctx ends, which is when the connection does.
func (s *Source) report(ctx context.Context, conn *grpc.ClientConn) {
	said := ""
	for ctx.Err() == nil {
		err := s.tell(ctx, conn)
		if code := status.Code(err); code == codes.Unimplemented || code == codes.PermissionDenied {
			s.log.Debug("the config server takes no statuses", "reason", reason(err))
			return
		}
		if text := reason(err); ctx.Err() == nil && text != said {
			said = text
			s.log.Warn("statuses of objects can't be told to the config server; it is tried again", "error", text)
		}
		sleep(ctx, reportAgain)
	}
}

// tell tells all statuses, and then each that changes.
func (s *Source) tell(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, wire.StatusMethod)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- stream.RecvMsg(&discoveryv3.DeltaDiscoveryRequest{}) }()
	s.reports.again()
	for {
		for _, m := range s.reports.take(s.urls) {
			if err := stream.SendMsg(m); err != nil {
				return <-ended // says why
			}
		}
		select {
		case <-s.reports.wake:
		case err := <-ended:
			return err
		}
	}
}

// again has all statuses be told.
func (r *reports) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.known {
		r.pending[k] = struct{}{}
	}
	for k := range r.gone {
		r.pending[k] = struct{}{}
	}
}

// maxReported and maxReportedBytes bound what is told at once.
const (
	maxReported      = 500
	maxReportedBytes = 1 << 20
)

// take returns what is to be told.
func (r *reports) take(urls map[object.Kind]string) (out []*discoveryv3.DeltaDiscoveryResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last *discoveryv3.DeltaDiscoveryResponse
	size := 0
	for _, k := range slices.SortedFunc(maps.Keys(r.pending), object.Key.Compare) {
		url, ok := urls[k.Kind]
		if !ok {
			continue
		}
		if last == nil || last.TypeUrl != url || len(last.Resources)+len(last.RemovedResources) == maxReported || size > maxReportedBytes {
			size = 0
			last = &discoveryv3.DeltaDiscoveryResponse{TypeUrl: url}
			out = append(out, last)
		}
		if known := r.known[k]; known != nil {
			last.Resources = append(last.Resources, known)
			size += len(known.GetResource().GetValue())
		} else {
			last.RemovedResources = append(last.RemovedResources, wire.Name(k.Name))
		}
	}
	clear(r.pending)
	return out
}
