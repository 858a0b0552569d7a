package echo

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// maxBody is how much of a request's body an answer repeats.
const maxBody = 64 << 10

// Answer is the JSON body of every answer that is not a fault.
type Answer struct {
	Name    string      `json:"name"`
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	Query   string      `json:"query,omitempty"`
	Proto   string      `json:"proto"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body,omitempty"`
	Remote  string      `json:"remote"`
	TLS     *TLSInfo    `json:"tls,omitempty"`
	// Attempt counts the requests with the same key, this one included; 0 for a
	// request without a key.
	Attempt int `json:"attempt,omitempty"`
}

// TLSInfo describes the TLS session that a request came through.
type TLSInfo struct {
	Version    string   `json:"version"`
	ServerName string   `json:"serverName,omitempty"`
	ALPN       string   `json:"alpn,omitempty"`
	Peers      []string `json:"peers,omitempty"` // subjects of the client's certificates
}

// ServeHTTP answers one request as its [Script] asks.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == logPath {
		s.log.ServeHTTP(w, r)
		return
	}
	script, err := parseScript(r)
	if err != nil {
		http.Error(w, "echo: "+err.Error(), http.StatusBadRequest)
		return
	}
	attempt := s.log.record(s.name, script.Key, r)
	if isWebSocket(r) {
		s.serveWebSocket(w, r)
		return
	}
	body, err := readBody(r)
	if err != nil {
		http.Error(w, "echo: read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if script.applies(attempt) {
		if !wait(r, script.Delay) {
			return
		}
		if script.Abort {
			panic(http.ErrAbortHandler)
		}
	}
	answer := Answer{
		Name:    s.name,
		Method:  r.Method,
		Host:    r.Host,
		Path:    r.URL.EscapedPath(),
		Query:   r.URL.RawQuery,
		Proto:   r.Proto,
		Headers: r.Header,
		Body:    body,
		Remote:  r.RemoteAddr,
		TLS:     tlsInfo(r.TLS),
		Attempt: attempt,
	}
	if isGRPC(r) {
		answer.Body = grpcBody(body)
		s.serveGRPC(w, script, answer)
		return
	}
	status := http.StatusOK
	if script.Status != 0 && script.applies(attempt) {
		status = script.Status
	}
	for _, h := range script.Headers {
		w.Header().Add(h.Name, h.Value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client is gone, so nobody can be told.
	_ = json.NewEncoder(w).Encode(answer)
}

// readBody returns the start of the body and drains a bounded rest.
func readBody(r *http.Request) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(io.Discard, r.Body, 16<<20)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b), nil
}

// wait reports whether the client was still there after d.
func wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func tlsInfo(state *tls.ConnectionState) *TLSInfo {
	if state == nil {
		return nil
	}
	info := &TLSInfo{
		Version:    tls.VersionName(state.Version),
		ServerName: state.ServerName,
		ALPN:       state.NegotiatedProtocol,
	}
	for _, c := range state.PeerCertificates {
		info.Peers = append(info.Peers, c.Subject.String())
	}
	return info
}
