package migrate

import (
	"fmt"
	"slices"
	"strconv"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// maxStatuses is how many statuses a page has at most.
const maxStatuses = 16

// customErrors has the Service of default-backend asked for the pages of errors.
func customErrors(c *conversion, in *ingress, value string) (Verdict, string) {
	if in.isTrue("disable-proxy-intercept-errors", false) {
		return NotNeeded, "disable-proxy-intercept-errors has answers of the backend pass as they are"
	}
	var statuses []string
	for _, word := range words(value) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil || n < 400 || n > 599:
			return NotPossible, fmt.Sprintf("%q is no status of an error", word)
		case n == 401 || n == 407:
			c.find(in, Finding{Annotation: "custom-http-errors", Value: word, Verdict: NotPossible, Message: "answers by which browsers ask for a password stay as they are"})
		case !slices.Contains(statuses, word):
			statuses = append(statuses, word)
		}
	}
	if len(statuses) == 0 {
		return NotNeeded, "no status is left"
	}
	name := in.annotation("default-backend")
	if name == "" {
		return NotPossible, "the controller's default backend isn't known here: name a Service in default-backend, or write response.errorPages of a TrafficPolicy"
	}
	port, ok := c.firstPort(in.Namespace, name)
	if !ok {
		return NotPossible, fmt.Sprintf("there is no Service %s with a port in what was read: have it among it", name)
	}
	pages := &v1alpha1.ErrorPages{}
	for some := range slices.Chunk(statuses, maxStatuses) {
		pages.Pages = append(pages.Pages, v1alpha1.ErrorPage{Statuses: some, BackendRef: &gwv1.BackendObjectReference{Name: gwv1.ObjectName(name), Port: &port}})
	}
	in.parts.traffic.Response.ErrorPages = pages
	return "", ""
}

// defaultBackend is looked at where errors have pages: by itself it is for Services without endpoints.
func defaultBackend(_ *conversion, in *ingress, _ string) (Verdict, string) {
	if in.annotation("custom-http-errors") == "" {
		return NotPossible, "a Service without endpoints is answered with 503; response.errorPages of a TrafficPolicy has a page for it, of a text or of a backend"
	}
	return "", ""
}

// firstPort is the port of a Service that ingress-nginx takes where none is named.
func (c *conversion) firstPort(namespace, service string) (int32, bool) {
	for _, s := range c.input.Services {
		if s.Namespace == namespace && s.Name == service && len(s.Spec.Ports) > 0 {
			return s.Spec.Ports[0].Port, true
		}
	}
	return 0, false
}
