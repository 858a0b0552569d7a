package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Experimental is what the definitions of the Gateway API say of their
// channel when they have its experimental fields.
const Experimental = "experimental"

// gatewayDefinition is the definition that tells the channel of all: nobody does
// without Gateways.
var gatewayDefinition = kind.All.Of(kind.Gateway).DefinitionName()

// Channel returns the Gateway API's channel that the cluster has, "standard" or
// "experimental"; empty if it doesn't have the API.
func Channel(ctx context.Context, r client.Reader) (string, error) {
	o := kind.All.Of(kind.Definition).New()
	if err := r.Get(ctx, client.ObjectKey{Name: gatewayDefinition}, o); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", nil
		}
		return "", fmt.Errorf("the Gateway API's channel: %w", err)
	}
	return o.GetAnnotations()[consts.ChannelAnnotation], nil
}

// tellChannel tells when the cluster has another channel than what is read.
func (s *Source) tellChannel() {
	s.mu.Lock()
	w := s.watched[kind.Definition]
	var channel string
	if w != nil {
		if o := w.objects[object.Name{Name: gatewayDefinition}]; o != nil {
			channel = o.GetAnnotations()[consts.ChannelAnnotation]
		}
	}
	s.mu.Unlock()
	if channel == s.channel || channel == "" {
		return
	}
	s.channel = channel
	if (channel == Experimental) != s.opts.Experimental {
		s.log.Warn("the Gateway API's channel is another than at the start: a restart takes it up", "channel", channel)
		if s.opts.OtherChannel != nil {
			s.opts.OtherChannel()
		}
	}
}
