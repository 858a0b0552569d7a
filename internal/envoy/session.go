package envoy

import (
	"errors"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statefulsessionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	headerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/header/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const sessionFilter = "envoy.filters.http.stateful_session"

// setSession makes the sessions of a route or of one of its clusters persist, by
// the filters that are enabled for it.
//
// Envoy writes the endpoint's address into the session, in base64. An endpoint
// that is gone is replaced by another, and the session begins anew there.
func setSession(filters *map[string]*anypb.Any, s *ir.Session) error {
	if s == nil {
		return nil
	}
	state, err := sessionState(s)
	if err != nil {
		return err
	}
	config, err := pack(&statefulsessionv3.StatefulSessionPerRoute{
		Override: &statefulsessionv3.StatefulSessionPerRoute_StatefulSession{
			StatefulSession: &statefulsessionv3.StatefulSession{SessionState: state},
		},
	})
	if err != nil {
		return err
	}
	if *filters == nil {
		*filters = map[string]*anypb.Any{}
	}
	(*filters)[sessionFilter] = config
	return nil
}

func sessionState(s *ir.Session) (*corev3.TypedExtensionConfig, error) {
	switch {
	case s.Cookie != "":
		cookie := &httpv3.Cookie{
			Name: s.Cookie,
			Path: s.Path,
			// Envoy adds HttpOnly itself.
			Attributes: []*httpv3.CookieAttribute{{Name: "SameSite", Value: "Strict"}},
		}
		if s.Lifetime > 0 {
			cookie.Ttl = duration(s.Lifetime)
		}
		if s.Secure {
			cookie.Attributes = append(cookie.Attributes, &httpv3.CookieAttribute{Name: "Secure"})
		}
		config, err := pack(&cookiev3.CookieBasedSessionState{Cookie: cookie})
		return &corev3.TypedExtensionConfig{Name: "envoy.http.stateful_session.cookie", TypedConfig: config}, err
	case s.Header != "":
		config, err := pack(&headerv3.HeaderBasedSessionState{Name: s.Header})
		return &corev3.TypedExtensionConfig{Name: "envoy.http.stateful_session.header", TypedConfig: config}, err
	default:
		return nil, errors.New("session persistence: neither a cookie nor a header")
	}
}
