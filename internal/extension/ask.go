package extension

import (
	"context"
	"errors"
	"fmt"
	"slices"

	extensionv1alpha1 "github.com/gatehouse-dev/gatehouse/api/extension/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// question is what servers are asked about: a virtual host, by its domain, or a resource, of certain bytes.
type question struct {
	hook Hook
	name string
	sum  envoy.Hash
}

// outcome is what the servers, one after the other, have made of it.
type outcome struct {
	host     *envoy.Part
	resource *envoy.Resource
	wrong    []string // of each without a usable answer
	silent   bool     // one of them said nothing
	withheld bool     // one of them has to answer, and hasn't
	mute     bool     // and that one said nothing of anything, or not any more
	again    bool     // it was said of this before, and nothing when they were asked anew
	// generation is the stage's when they were asked.
	generation uint64
}

// subject is a question with what it is about.
type subject struct {
	question
	host     *envoy.Part
	resource *envoy.Resource
}

func aboutHost(p *envoy.Part) subject {
	return subject{question: question{VirtualHost, p.Name, p.Hash}, host: p}
}

func aboutResource(r *envoy.Resource) subject {
	return subject{question: question{hookOf(r.Type), r.Name, envoy.Sum(r.Body())}, resource: r}
}

// ask asks the servers about a subject of a Gateway.
func (s *Stage) ask(ctx context.Context, gateway object.Name, of subject, generation uint64) *outcome {
	o := &outcome{host: of.host, resource: of.resource, generation: generation}
	for _, c := range s.clients {
		if !slices.Contains(c.Hooks, of.hook) {
			continue
		}
		result, err := c.change(ctx, gateway, of.question, o)
		s.metrics.answers.WithLabelValues(c.Name, string(of.hook), result).Inc()
		if err == nil {
			continue
		}
		o.wrong = append(o.wrong, fmt.Sprintf("extension %s has no effect on %s %s: %v", c.Name, of.hook, of.name, err))
		o.silent = o.silent || result == silent
		o.withheld = o.withheld || c.FailureMode == Closed
		o.mute = o.mute || c.FailureMode == Closed && result == silent && !c.there()
	}
	return o
}

// change has a server change what is in an outcome.
func (c *client) change(ctx context.Context, gateway object.Name, of question, o *outcome) (result string, err error) {
	var offer *envoy.Offer
	if o.host != nil {
		offer, err = envoy.OfferHost(o.host)
	} else {
		offer, err = envoy.OfferResource(o.resource)
	}
	if err != nil {
		return refused, err
	}
	q := &extensionv1alpha1.ChangeRequest{
		Gateway: &extensionv1alpha1.Gateway{Namespace: gateway.Namespace, Name: gateway.Name}, Hook: hooks[of.hook], Name: of.name,
	}
	if err := c.fill(q, offer); err != nil {
		return refused, err
	}
	a, err := c.ask(ctx, q)
	var nothing *silentError
	switch {
	case errors.As(err, &nothing):
		return silent, err
	case err != nil:
		return refused, err
	}
	switch how := a.GetChange().(type) {
	case *extensionv1alpha1.ChangeResponse_Resource:
		err = offer.TakePacked(how.Resource)
	case *extensionv1alpha1.ChangeResponse_Json:
		err = offer.TakeJSON([]byte(how.Json))
	case *extensionv1alpha1.ChangeResponse_Patch:
		err = offer.TakePatch([]byte(how.Patch))
	default:
		return unchanged, nil
	}
	if err != nil {
		return refused, fmt.Errorf("the answer can't be taken: %w", err)
	}
	o.host, o.resource = offer.Host(), offer.Resource()
	return changed, nil
}

// fill puts what is offered into a question.
func (c *client) fill(q *extensionv1alpha1.ChangeRequest, offer *envoy.Offer) error {
	if c.Encoding == JSON {
		text, err := offer.JSON()
		q.Content = &extensionv1alpha1.ChangeRequest_Json{Json: string(text)}
		return err
	}
	packed, err := offer.Packed()
	q.Content = &extensionv1alpha1.ChangeRequest_Resource{Resource: packed}
	return err
}

// hooks are the hooks as the protocol has them.
var hooks = map[Hook]extensionv1alpha1.Hook{
	VirtualHost: extensionv1alpha1.Hook_HOOK_VIRTUAL_HOST,
	Listener:    extensionv1alpha1.Hook_HOOK_LISTENER,
	Cluster:     extensionv1alpha1.Hook_HOOK_CLUSTER,
}
