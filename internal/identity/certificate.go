package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	maxBody    = 16 << 10
	bodyTime   = 5 * time.Second
	reviewTime = 10 * time.Second

	// This many requests may use the API server at the same time.
	maxReviews = 16

	// This many requests may wait for their pods' addresses, and for so long. The
	// kubelet reports an address a second or two after the pod has begun to run.
	maxWaits    = 64
	addressTime = 5 * time.Second
)

// certificate answers a request for a certificate.
func (s *Server) certificate(w http.ResponseWriter, r *http.Request) {
	source := sourceOf(r)
	answer, err := s.issue(w, r, source)
	if err == nil {
		reply(w, http.StatusOK, answer)
		return
	}
	var no *refusal
	if !errors.As(err, &no) {
		s.failures.Do(func() { s.log.Error("a certificate can't be issued", "source", source, "error", err) })
		reply(w, http.StatusServiceUnavailable, client.Problem{Error: "the controller can't tell at the moment; try again"})
		return
	}
	s.refusals.add(no.reason, no.text, source.String())
	if no.reason == reasonRate {
		w.Header().Set("Retry-After", "5")
	}
	reply(w, no.status, client.Problem{Error: no.text})
}

// issue makes the checks, the cheapest first.
func (s *Server) issue(w http.ResponseWriter, r *http.Request, source netip.Addr) (*client.Response, error) {
	now := time.Now()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	payers := s.payers(r, source, token)
	if !s.limiter.allow(payers, now) {
		return nil, refuse(reasonRate, "too many requests from "+source.String())
	}
	if !ok || token == "" {
		return nil, refuse(reasonNoToken, "there is no token: send it as Authorization: Bearer")
	}
	if no := inspect(token, now); no != nil {
		return nil, no
	}
	key, no := readKey(w, r)
	if no != nil {
		return nil, no
	}

	pod, gateway, role, err := s.identify(r.Context(), token, now)
	if err != nil {
		return nil, err
	}
	if !s.o.AnySource {
		if pod, err = s.addressed(r.Context(), pod); err != nil {
			return nil, err
		}
		if no := sentBy(pod, source); no != nil {
			return nil, no
		}
	}
	chain, authorities, until, err := s.o.Authority.Issue(key, gateway, role, pod.Name)
	if err != nil {
		return nil, err
	}
	s.limiter.granted(payers)
	s.issued.Inc()
	s.log.Debug("certificate issued", "gateway", gateway, "role", role, "pod", pod.Name, "until", until)
	return &client.Response{Certificate: string(chain), Authorities: string(authorities)}, nil
}

// identify asks the API server whose token it is: a pod's, of a Gateway's fleet.
func (s *Server) identify(ctx context.Context, token string, now time.Time) (*corev1.Pod, object.Name, Role, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	select {
	case s.reviews <- struct{}{}:
		defer func() { <-s.reviews }()
	case <-ctx.Done():
		return nil, object.Name{}, "", ctx.Err()
	}
	h, err := review(ctx, s.o.Client, token)
	if err != nil {
		return nil, object.Name{}, "", err
	}
	// Where fleets are, those of the namespace's own Gateways may be too. Elsewhere pods can't even be read.
	if !slices.Contains(s.o.Namespaces(object.Name{Namespace: h.namespace}), h.namespace) {
		return nil, object.Name{}, "", refuse(reasonForeign, fmt.Sprintf("Pod %s/%s is in a namespace where no fleets are", h.namespace, h.pod))
	}
	pod, err := s.pod(ctx, h, now)
	if err != nil {
		return nil, object.Name{}, "", err
	}
	gateway, role, err := s.fleetOf(ctx, pod, h)
	return pod, gateway, role, err
}

func readKey(w http.ResponseWriter, r *http.Request) (key any, no *refusal) {
	// A client must not keep its connection by sending a request slowly.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }() // the answer may take longer
	var req client.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req); err != nil {
		return nil, refuse(reasonRequest, "the body is not as {\"csr\": PEM}, or longer than 16 KiB")
	}
	key, err := parseCSR([]byte(req.CSR))
	if err != nil {
		return nil, refuse(reasonRequest, err.Error())
	}
	return key, nil
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone
}

func sourceOf(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}
