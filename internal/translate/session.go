package translate

import (
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// session translates how sessions of a rule persist; nil for not at all. A cookie
// that nobody has named is named by backend.
func (t *translation) session(at position, spec *gwv1.SessionPersistence) *ir.Session {
	if spec == nil {
		return nil
	}
	const name = "sessionPersistence"
	how := gwv1.CookieBasedSessionPersistence
	if spec.Type != nil {
		how = *spec.Type
	}
	switch how {
	case gwv1.CookieBasedSessionPersistence:
		return t.cookie(at, name, spec)
	case gwv1.HeaderBasedSessionPersistence:
		if spec.AbsoluteTimeout != nil {
			f := at.field(name + ".absoluteTimeout")
			t.refuse(f, condition.SessionTimeoutNeedsCookie(f))
		}
		return t.sessionHeader(at, name+".header", spec.Header)
	default:
		f := at.field(name + ".type")
		t.refuse(f, condition.UnknownValue(f, string(how), "Cookie", "Header"))
		return nil
	}
}

func (t *translation) sessionHeader(at position, name string, h *gwv1.HeaderConfig) *ir.Session {
	if h == nil {
		f := at.field(name)
		t.refuse(f, condition.MissingField(f, "type Header"))
		return nil
	}
	header := strings.ToLower(string(h.Name))
	f := at.field(name + ".name")
	switch {
	case !ir.IsToken(header):
		t.refuse(f, condition.InvalidHeaderName(f, string(h.Name)))
	case header == "host" || ir.IsFraming(header) || strings.HasPrefix(header, internalHeaders):
		t.refuse(f, condition.SessionHeaderTaken(f, string(h.Name)))
	}
	return &ir.Session{Header: header}
}

func (t *translation) cookie(at position, name string, spec *gwv1.SessionPersistence) *ir.Session {
	s := &ir.Session{Path: "/"}
	permanent := false
	if c := spec.Cookie; c != nil {
		if c.Name != nil {
			s.Cookie = string(*c.Name)
			if !ir.IsToken(s.Cookie) {
				f := at.field(name + ".cookie.name")
				t.refuse(f, condition.InvalidCookieName(f, s.Cookie))
			}
		}
		if c.Path != nil {
			s.Path = *c.Path
			if pathProblem(s.Path, ";") != "" {
				f := at.field(name + ".cookie.path")
				t.refuse(f, condition.InvalidCookiePath(f, s.Path))
			}
		}
		if c.LifetimeType != nil {
			switch *c.LifetimeType {
			case gwv1.SessionCookieLifetimeType:
			case gwv1.PermanentCookieLifetimeType:
				permanent = true
			default:
				f := at.field(name + ".cookie.lifetimeType")
				t.refuse(f, condition.UnknownValue(f, string(*c.LifetimeType), "Session", "Permanent"))
			}
		}
	}
	f := at.field(name + ".absoluteTimeout")
	switch d := t.duration(at, name+".absoluteTimeout", spec.AbsoluteTimeout); {
	case permanent && spec.AbsoluteTimeout == nil:
		t.refuse(f, condition.MissingField(f, "lifetimeType Permanent"))
	case d == nil:
	case !permanent:
		t.refuse(f, condition.SessionTimeoutNeedsPermanent(f))
	case *d < time.Second:
		t.refuse(f, condition.SessionTooShort(f, string(*spec.AbsoluteTimeout)))
	default:
		s.Lifetime = *d
	}
	return s
}

// sessionOn is a rule's session on one of its backends; others are those that it
// has on the backends before. A backend is chosen by weight first and its endpoint
// by the session then (GEP-1619), so each backend has a cookie of its own: with a
// common one, a client would lose its place at one backend by a visit to another.
func sessionOn(s *ir.Session, k ir.BackendKey, others []ir.WeightedBackend) *ir.Session {
	if s == nil || s.Header != "" {
		return s
	}
	taken := func(b ir.WeightedBackend) bool {
		return b.Session != nil && b.Session.Cookie == s.Cookie && b.Backend != k
	}
	switch {
	case s.Cookie == "":
		named := *s
		named.Cookie = "gatehouse-" + sessionMark(k)
		return &named
	case slices.ContainsFunc(others, taken):
		named := *s
		named.Cookie += "-" + sessionMark(k)
		return &named
	default:
		return s
	}
}

// sessionMark tells an object's port from others, and stays when policies change
// what else there is to it.
func sessionMark(k ir.BackendKey) string {
	b := k.Backend()
	of := ""
	if b.Object.Kind != kind.Service {
		of = b.Object.Kind.Name()
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(of + b.Object.Name.String() + ":" + strconv.Itoa(int(b.Port))))
	return hex.EncodeToString(h.Sum(nil))
}

// hasCookie reports whether a backend's sessions are told by a cookie.
func hasCookie(b ir.WeightedBackend) bool { return b.Session != nil && b.Session.Cookie != "" }
