package envoy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Offer is a listener, a cluster or a virtual host that somebody else may change: a patch, or an extension server. What
// filters of virtual hosts are told is not shown.
type Offer struct {
	resource *Resource
	part     *Part // of a resource that changes on its own; nil for the whole
	whole    message
	shown    message
}

// OfferResource offers a listener or cluster.
func OfferResource(r *Resource) (*Offer, error) {
	o := &Offer{resource: r}
	switch r.Type { //nolint:exhaustive // others are nobody's to change
	case Listeners:
		o.whole = &listenerv3.Listener{}
	case Clusters:
		o.whole = &clusterv3.Cluster{}
	default:
		return nil, fmt.Errorf("%s %s can't be changed", r.Type, r.Name)
	}
	o.shown = o.whole
	return o, proto.Unmarshal(r.Body(), o.whole)
}

// OfferHost offers a virtual host.
func OfferHost(p *Part) (*Offer, error) {
	_, _, n := protowire.ConsumeTag(p.Body)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	body, n := protowire.ConsumeBytes(p.Body[n:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	host := &routev3.VirtualHost{}
	if err := proto.Unmarshal(body, host); err != nil {
		return nil, err
	}
	return &Offer{part: p, whole: host, shown: bareHost(host)}, nil
}

// Again offers what has become of an offer.
func (o *Offer) Again() (*Offer, error) {
	if o.part != nil {
		return OfferHost(o.part)
	}
	return OfferResource(o.resource)
}

// Packed is what is offered, with its type.
func (o *Offer) Packed() (*anypb.Any, error) {
	out := &anypb.Any{}
	return out, anypb.MarshalFrom(out, o.shown, wire)
}

// JSON is what is offered as Envoy's documentation writes it, with fields in its own spelling.
func (o *Offer) JSON() ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(o.shown)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer // protojson varies its white space on purpose
	err = json.Compact(&compact, text)
	return compact.Bytes(), err
}

// TakePacked takes what was made of what was offered. With an error, Resource and Part are as they were.
func (o *Offer) TakePacked(a *anypb.Any) error {
	if n := len(a.GetValue()); n > maxPatched {
		return fmt.Errorf("it has %d bytes, over the limit of %d", n, maxPatched)
	}
	after := o.empty()
	if err := a.UnmarshalTo(after); err != nil {
		return inShort(err)
	}
	return o.take(after)
}

// TakeJSON is TakePacked of what JSON has returned.
func (o *Offer) TakeJSON(text []byte) error {
	if len(text) > maxPatched {
		return fmt.Errorf("it has %d bytes, over the limit of %d", len(text), maxPatched)
	}
	after := o.empty()
	if err := protojson.Unmarshal(text, after); err != nil {
		return inShort(err)
	}
	return o.take(after)
}

// TakePatch applies operations of a JSON patch to what JSON returns, and takes what that gives.
func (o *Offer) TakePatch(operations []byte) error {
	if err := checkOperations(operations); err != nil {
		return err
	}
	text, err := o.JSON()
	if err != nil {
		return err
	}
	if text, err = applied(text, operations); err != nil {
		return err
	}
	return o.TakeJSON(text)
}

func (o *Offer) empty() message { return o.whole.ProtoReflect().New().Interface().(message) }

// take checks what was made of what was offered.
func (o *Offer) take(after message) (err error) {
	switch after := after.(type) {
	case *listenerv3.Listener:
		if err = cmp.Or(after.ValidateAll(), validPacked(after)); err == nil {
			routerLast(after)
			err = protected(o.whole.(*listenerv3.Listener), after)
		}
	case *routev3.VirtualHost:
		if err = checkChanges(o.shown, after); err == nil {
			dress(after, o.whole.(*routev3.VirtualHost))
		}
	default:
		err = checkChanges(o.shown, after)
	}
	if err != nil {
		return inShort(err)
	}
	if o.part != nil {
		return o.takeHost(after)
	}
	body, err := marshal(after)
	if err != nil {
		return inShort(err)
	}
	if len(body) > maxPatched {
		return fmt.Errorf("it has %d bytes, over the limit of %d", len(body), maxPatched)
	}
	out := *o.resource
	out.head, out.Version = body, Sum(body).String()
	o.resource = &out
	return nil
}

func (o *Offer) takeHost(after message) error {
	body, err := field(virtualHosts, after)
	if err != nil {
		return inShort(err)
	}
	if len(body) > len(o.part.Body)+maxPatched {
		return errors.New("it has become too large")
	}
	out := *o.part
	out.Body, out.Hash = body, Sum(body)
	o.part = &out
	return nil
}

// Resource is what was offered, with what has been taken.
func (o *Offer) Resource() *Resource { return o.resource }

// Host is Resource of a virtual host.
func (o *Offer) Host() *Part { return o.part }
