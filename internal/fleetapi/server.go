package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// Options configure a Server.
type Options struct {
	Store  *Store
	Caller *Caller
	// Allowed asks the API server whether a user may do something; the answer may say why not.
	Allowed func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
	// Draw draws all objects, and VisibleIn what of that those may see who may read one namespace.
	Draw      func() topology.Drawing
	VisibleIn func(all topology.Drawing, namespace string) topology.Drawing
	Log       *slog.Logger
}

// Server answers the API server's requests for the group.
type Server struct {
	o       Options
	mux     *http.ServeMux
	reviews chan struct{}
	lists   chan struct{} // those that are being written

	mu      sync.Mutex
	watches map[string]int // open ones by user
	total   int
}

const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	writeTime  = 30 * time.Second // of an answer, or of a watch's event
	reviewTime = 5 * time.Second
	openTime   = 5 * time.Second // until a controller that has just begun knows all proxies
	maxHeader  = 64 << 10
	maxReviews = 32
	maxLists   = 8 // each is a text of all proxies, for as long as it is being read
	// The API server sends the requests of all users over one connection.
	maxStreams = 1000
	maxWatches = 512
	maxOfUser  = 64
	// A watch ends after a time between these, so that rights that a user has lost end too.
	leastWatch = 30 * time.Minute
	mostWatch  = time.Hour
	// A client that wants bookmarks gets one so often, beside what changes.
	bookmarkInterval = time.Minute
	// Changes that come together are sent together.
	watchPause = 50 * time.Millisecond
)

const groupPath = "/apis/" + Group + "/" + Version

// NewServer returns a server.
func NewServer(o Options) *Server {
	s := &Server{o: o, mux: http.NewServeMux(), reviews: make(chan struct{}, maxReviews), lists: make(chan struct{}, maxLists), watches: map[string]int{}}
	s.mux.HandleFunc("/apis", s.discovery(&metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{apiGroup()}}))
	group := apiGroup()
	s.mux.HandleFunc("/apis/"+Group, s.discovery(&group))
	s.mux.HandleFunc(groupPath, s.discovery(&metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: groupVersion.String(),
		APIResources: []metav1.APIResource{{
			Name: Resource, SingularName: "proxy", Namespaced: true, Kind: kind, Verbs: metav1.Verbs{"get", "list", "watch"}, Categories: []string{"gatehouse"},
		}, {
			Name: Topologies, SingularName: "topology", Namespaced: true, Kind: topologyKind, Verbs: metav1.Verbs{"get", "list"}, Categories: []string{"gatehouse"},
		}},
	}))
	s.mux.HandleFunc(groupPath+"/"+Resource, s.collection)
	s.mux.HandleFunc(groupPath+"/namespaces/{namespace}/"+Resource, s.collection)
	s.mux.HandleFunc(groupPath+"/namespaces/{namespace}/"+Resource+"/{name}", s.one)
	s.mux.HandleFunc(groupPath+"/"+Topologies, s.topologies)
	s.mux.HandleFunc(groupPath+"/namespaces/{namespace}/"+Topologies, s.topologies)
	s.mux.HandleFunc(groupPath+"/namespaces/{namespace}/"+Topologies+"/{name}", s.topology)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "there is nothing here", 0, false))
	})
	return s
}

func apiGroup() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion.String(), Version: Version}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"},
		Name:     Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

// Serve serves a listener of TLS, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, lis net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: time.Minute, PingTimeout: 15 * time.Second},
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug), // anybody can cause these
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type callerKey struct{}

// ServeHTTP answers the API server, and nobody else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, err := s.o.Caller.asks(r)
	switch {
	case err != nil || who == nil:
		s.fail(w, apierrors.NewUnauthorized("proxies are asked for through the API server"))
	case r.Method != http.MethodGet:
		s.fail(w, apierrors.NewMethodNotSupported(schema.GroupResource{Group: Group, Resource: Resource}, strings.ToLower(r.Method)))
	default:
		s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	}
}

// discovery says what there is. The API server has decided who may read that.
func (s *Server) discovery(what any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { s.reply(w, http.StatusOK, what) }
}

// collection answers lists and watches.
func (s *Server) collection(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	of, err := selectionOf(r.PathValue("namespace"), q.Get("labelSelector"), q.Get("fieldSelector"))
	if err != nil {
		s.fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	as, err := formOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	watches, _ := strconv.ParseBool(q.Get("watch"))
	verb := "list"
	if watches {
		verb = "watch"
	}
	if !s.may(w, r, verb, Resource, of) || !s.ready(w, r) {
		return
	}
	if watches {
		s.watch(w, r, of, as)
		return
	}
	end, ok := s.begin(w, Resource)
	if !ok {
		return
	}
	defer end()
	list, version := s.o.Store.list(of)
	meta := metav1.ListMeta{ResourceVersion: version.String()}
	if as == nil {
		items := make([]Proxy, 0, len(list))
		for _, e := range list {
			items = append(items, e.object())
		}
		s.reply(w, http.StatusOK, proxyList{TypeMeta: typeOf(listKind), ListMeta: meta, Items: items})
		return
	}
	s.reply(w, http.StatusOK, as.table(meta, list...))
}

// begin makes room for the list of a resource until end is called; else it has answered.
func (s *Server) begin(w http.ResponseWriter, resource string) (end func(), ok bool) {
	select {
	case s.lists <- struct{}{}:
		return func() { <-s.lists }, true
	default:
		s.fail(w, apierrors.NewTooManyRequests("there are too many lists of "+resource+" at once", 1))
		return nil, false
	}
}

// one answers for one proxy.
func (s *Server) one(w http.ResponseWriter, r *http.Request) {
	of := selection{namespace: r.PathValue("namespace"), name: r.PathValue("name"), labels: labels.Everything()}
	as, err := formOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	if !s.may(w, r, "get", Resource, of) || !s.ready(w, r) {
		return
	}
	e := s.o.Store.get(key{of.namespace, of.name})
	switch {
	case e == nil:
		s.fail(w, apierrors.NewNotFound(schema.GroupResource{Group: Group, Resource: Resource}, of.name))
	case as == nil:
		s.reply(w, http.StatusOK, e.object())
	default:
		s.reply(w, http.StatusOK, as.table(metav1.ListMeta{ResourceVersion: e.version.String()}, e))
	}
}

// may reports whether the user may do this with a resource; else it has answered.
func (s *Server) may(w http.ResponseWriter, r *http.Request, verb, resource string, of selection) bool {
	who, _ := r.Context().Value(callerKey{}).(user.Info)
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range who.GetExtra() {
		extra[k] = v
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	var answer authorizationv1.SubjectAccessReviewStatus
	var err error
	select {
	case s.reviews <- struct{}{}:
		answer, err = s.o.Allowed(ctx, authorizationv1.SubjectAccessReviewSpec{
			User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: of.namespace, Verb: verb, Group: Group, Version: Version, Resource: resource, Name: of.name,
			},
		})
		<-s.reviews
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case r.Context().Err() != nil: // who asked is gone
		s.fail(w, r.Context().Err())
	case err != nil:
		s.o.Log.Error("whether a user may see something can't be asked", "resource", resource, "user", who.GetName(), "error", err)
		s.fail(w, apierrors.NewServiceUnavailable("the API server can't be asked whether you may"))
	case !answer.Allowed || answer.Denied:
		s.fail(w, apierrors.NewForbidden(schema.GroupResource{Group: Group, Resource: resource}, of.name,
			errors.New(strings.TrimSpace("User "+strconv.Quote(who.GetName())+" may not "+verb+" them. "+answer.Reason))))
	default:
		return true
	}
	return false
}

// ready waits until all proxies are known; false if it has answered that they are not.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) bool {
	wait := time.NewTimer(openTime)
	defer wait.Stop()
	select {
	case <-s.o.Store.open:
		return true
	case <-r.Context().Done():
	case <-wait.C:
	}
	s.fail(w, apierrors.NewServiceUnavailable("this controller doesn't know all proxies yet"))
	return false
}

// enter counts a watch of a user; false if there are too many.
func (s *Server) enter(who string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxWatches || s.watches[who] >= maxOfUser {
		return false
	}
	s.total++
	s.watches[who]++
	return true
}

func (s *Server) leave(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.watches[who]--; s.watches[who] == 0 {
		delete(s.watches, who)
	}
}

// watch sends what changes until the client goes, or its time is over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, of selection, as *form) {
	who, _ := r.Context().Value(callerKey{}).(user.Info)
	q := r.URL.Query()
	var at version
	initial := q.Get("sendInitialEvents") == "true"
	if text := q.Get("resourceVersion"); text == "" || text == "0" || initial {
		initial = initial || q.Get("sendInitialEvents") == ""
	} else if n, err := strconv.ParseUint(text, 10, 64); err != nil {
		s.fail(w, apierrors.NewBadRequest("resourceVersion "+strconv.Quote(text)+" is none of ours"))
		return
	} else if at, err = s.o.Store.place(version(n)); err != nil {
		s.fail(w, apierrors.NewResourceExpired(err.Error()))
		return
	}
	if !s.enter(who.GetName()) {
		s.fail(w, apierrors.NewTooManyRequests("there are too many watches of proxies", int(bookmarkInterval.Seconds())))
		return
	}
	defer s.leave(who.GetName())
	ctx, cancel := context.WithTimeout(r.Context(), watchTime(q.Get("timeoutSeconds")))
	defer cancel()
	to := sender{as: as, control: http.NewResponseController(w), encode: json.NewEncoder(w), within: writeTime}
	bookmarks, _ := strconv.ParseBool(q.Get("allowWatchBookmarks"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if to.flush() != nil {
		return
	}
	if at == 0 {
		list, upTo := s.o.Store.list(of)
		at = upTo
		if initial {
			for _, e := range list {
				if ctx.Err() != nil || to.send(watch.Added, e) != nil {
					return
				}
			}
		}
		if q.Get("sendInitialEvents") == "true" && bookmarks && to.bookmark(at, map[string]string{metav1.InitialEventsAnnotationKey: "true"}) != nil {
			return
		}
	}
	mark := time.NewTicker(bookmarkInterval)
	defer mark.Stop()
	for {
		changes, until, more := s.o.Store.since(at, of)
		at = until
		for _, c := range changes {
			if ctx.Err() != nil || to.send(c.kind, c.entry) != nil {
				return
			}
		}
		select {
		case <-more:
			time.Sleep(watchPause)
		case <-mark.C:
			if bookmarks && to.bookmark(at, nil) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// watchTime is how long a watch lasts for which a client wants some seconds; empty for as long as may be.
func watchTime(seconds string) time.Duration {
	most := leastWatch + rand.N(mostWatch-leastWatch)
	if n, err := strconv.Atoi(seconds); err == nil && n > 0 && time.Duration(n) < most/time.Second {
		return time.Duration(n) * time.Second
	}
	return most
}

// sender writes the events of a watch.
type sender struct {
	as      *form
	control *http.ResponseController
	encode  *json.Encoder
	within  time.Duration // an event is written
}

func (t *sender) send(kind watch.EventType, e *entry) error {
	var object any = e.object()
	if t.as != nil {
		object = t.as.table(metav1.ListMeta{ResourceVersion: e.version.String()}, e)
	}
	return t.write(kind, object)
}

func (t *sender) bookmark(at version, annotations map[string]string) error {
	meta := metav1.ObjectMeta{ResourceVersion: at.String(), Annotations: annotations}
	if t.as == nil {
		return t.write(watch.Bookmark, Proxy{TypeMeta: typeOf(kind), ObjectMeta: meta})
	}
	table := t.as.table(metav1.ListMeta{ResourceVersion: at.String()})
	table.Rows = append(table.Rows, t.as.row(nil, meta, Proxy{TypeMeta: typeOf(kind), ObjectMeta: meta}))
	return t.write(watch.Bookmark, table)
}

func (t *sender) write(kind watch.EventType, object any) error {
	raw, err := json.Marshal(object)
	if err == nil {
		err = t.control.SetWriteDeadline(time.Now().Add(t.within))
	}
	if err == nil {
		err = t.encode.Encode(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}})
	}
	if err == nil {
		err = t.flush()
	}
	if err == nil { // else the stream would be reset at that time though nothing is being written
		err = t.control.SetWriteDeadline(time.Time{})
	}
	return err
}

func (t *sender) flush() error { return t.control.Flush() }

// form is the table that a client asks for, as kubectl does; nil for the objects themselves.
type form struct{ include metav1.IncludeObjectPolicy }

// formOf reads what a client accepts. What it likes best of what there is comes first, as all clients write it.
func formOf(r *http.Request) (*form, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(accept, ",") {
		typ, params, err := mime.ParseMediaType(text)
		if err != nil || typ != "application/json" && typ != "application/*" && typ != "*/*" {
			continue
		}
		switch {
		case params["as"] == "":
			return nil, nil
		case params["as"] == "Table" && params["g"] == metav1.GroupName && params["v"] == "v1":
			include := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
			switch include {
			case metav1.IncludeNone, metav1.IncludeObject, metav1.IncludeMetadata:
			case "":
				include = metav1.IncludeMetadata
			default:
				return nil, apierrors.NewBadRequest("includeObject is None, Metadata or Object")
			}
			return &form{include}, nil
		}
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", schema.GroupResource{Group: Group, Resource: Resource}, "",
		"proxies are had as application/json, or as a Table of meta.k8s.io/v1 in it", 0, false)
}

func (f *form) table(meta metav1.ListMeta, list ...*entry) metav1.Table {
	t, now := newTable(columns, len(list)), time.Now()
	t.ListMeta = meta
	for _, e := range list {
		t.Rows = append(t.Rows, f.row(e.cells(now), e.meta(), e.object()))
	}
	return t
}

// newTable is a table with room for rows.
func newTable(columns []metav1.TableColumnDefinition, rows int) metav1.Table {
	return metav1.Table{
		TypeMeta:          metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"},
		ColumnDefinitions: columns, Rows: make([]metav1.TableRow, 0, rows),
	}
}

func (f *form) row(cells []any, meta metav1.ObjectMeta, object any) metav1.TableRow {
	row := metav1.TableRow{Cells: cells}
	if cells == nil {
		row.Cells = []any{}
	}
	var of any
	switch f.include {
	case metav1.IncludeObject:
		of = object
	case metav1.IncludeMetadata:
		of = metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}, ObjectMeta: meta,
		}
	default:
		return row
	}
	row.Object.Raw, _ = json.Marshal(of) //nolint:errcheck // plain data
	return row
}

func (s *Server) reply(w http.ResponseWriter, status int, body any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked is gone
}

// fail answers with an error as the API server writes them.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	s.reply(w, int(status.Code), status)
}
