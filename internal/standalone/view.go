package standalone

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/admin"
	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// View returns the current state.
func (s *Standalone) View() view.View {
	v := view.Of(s.pipeline)
	v.Ready, v.Why = s.Ready()
	v.Waiting = s.Waiting()
	v.Remotes = s.elsewhere()
	s.times.Fill(&v, time.Now())
	for gateway, st := range s.fleet.Snapshot() {
		p := view.Proxy{
			Gateway: gateway.String(), Phase: string(st.Phase), Live: st.Live, PID: st.PID,
			Since: st.Since, Restarts: st.Restarts, Adopted: st.Adopted,
		}
		if st.LastExit != nil {
			p.LastExit = st.LastExit.String()
		}
		v.Proxies = append(v.Proxies, p)
	}
	slices.SortFunc(v.Proxies, func(a, b view.Proxy) int { return cmp.Compare(a.Gateway, b.Gateway) })
	return v
}

// elsewhere says how it is with config servers and member clusters.
func (s *Standalone) elsewhere() (out []source.Remote) {
	for _, r := range s.remotes {
		out = append(out, r.State())
	}
	if s.members != nil {
		out = append(out, s.members.States()...)
	}
	return out
}

// Brief returns the current state with no more than a number of routes that are in order, and how many are
// left out; see view.Brief.
func (s *Standalone) Brief(routes int) (v view.View, left int) {
	return view.Brief(s.pipeline, s.troubled, routes)
}

// Handler returns the admin interface, see admin.Admin.
func (s *Standalone) Handler() http.Handler {
	return admin.Admin{
		Pipeline: s.pipeline, Server: s.server, View: s.View, Troubled: s.troubled.Counts, Ready: s.readyz,
		Processes: s.processes, More: append(slices.Concat(s.keySets.Collectors(), s.stage.Collectors()), s.fleet, remote.Collector(s.elsewhere)),
	}.Handler()
}

// processes are the Envoys, one for each Gateway.
func (s *Standalone) processes() (out []fleet.Pod) {
	for gateway, st := range s.fleet.Snapshot() {
		out = append(out, fleet.Pod{Gateway: gateway.String(), Ready: st.Live, Draining: st.Phase == proxy.PhaseDraining})
	}
	return out
}

func (s *Standalone) readyz(w http.ResponseWriter, _ *http.Request) {
	if ok, why := s.Ready(); !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	for _, path := range s.Waiting() {
		fmt.Fprintf(w, "waiting for %s to appear\n", path)
	}
	fmt.Fprintln(w, "ok")
}
