package chart

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestApart protects clients, and authors of routes, from a part of the control plane that has gone: with what makes proxies
// and what serves them in Deployments of their own, each is away for a while, and all requests are answered. What the other
// one does goes on, and what waited is done once it is back.
func TestApart(t *testing.T) {
	in := openFleet(t, `{deployment: {replicas: 2}}`, "--set", "infrastructure.apart=true,infrastructure.replicas=1")
	address := in.programmed()
	in.serves(address)
	in.readyPods(2)
	scale := func(deployment string, replicas int) {
		t.Helper()
		in.kubectl("scale", "-n", "gatehouse-system", "deployment/"+deployment, fmt.Sprint("--replicas=", replicas))
		if replicas == 0 {
			in.kubectl("wait", "-n", "gatehouse-system", "--for=delete", "pods", "-l", "app.kubernetes.io/name="+deployment, "--timeout=3m")
		} else {
			in.kubectl("rollout", "status", "-n", "gatehouse-system", "deployment/"+deployment, "--timeout=3m")
		}
	}
	stop := in.load(20, map[string]protocol{"HTTP/1": in.http1(address, http.StatusMovedPermanently, brief)})

	scale("gatehouse-infrastructure", 0)
	in.redirects("edited", "302")
	edited := time.Now()
	in.within("the edit is served", func() error { return in.answers(address, "edited.test", http.StatusFound) })
	t.Logf("an edit is served after %s without what makes proxies", time.Since(edited).Round(10*time.Millisecond))
	in.edit(`{"deployment": {"replicas": 3}}`)
	in.readyPods(2)
	scale("gatehouse-infrastructure", 1)
	in.readyPods(3)

	scale("gatehouse", 0)
	in.edit(`{"deployment": {"replicas": 2}}`)
	in.within("there are two replicas without what serves them", func() error {
		if got := in.kubectl("get", "-n", "shop", "deployment/web-gatehouse", "-o", "jsonpath={.spec.replicas}"); got != "2" {
			return errors.New(got)
		}
		return nil
	})
	in.redirects("later", "302")
	time.Sleep(10 * time.Second)
	if err := in.answers(address, "later.test", http.StatusFound); err == nil {
		t.Error("an edit is served by nobody")
	}
	scale("gatehouse", 1)
	in.within("the edit is served", func() error { return in.answers(address, "later.test", http.StatusFound) })
	in.showsProxies(2)
	answered(t, stop)
}

// redirects adds a route for a host NAME.test.
func (in *running) redirects(name, status string) {
	in.Helper()
	in.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ` + name + `, namespace: shop}
spec: {parentRefs: [{name: web}], hostnames: [` + name + `.test], rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: ` + status + `, hostname: there.example}}]}]}
`)
}

// answers reports whether a host has an answer with a status.
func (in *running) answers(address, host string, want int) error {
	web := &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: in.Dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		return err
	}
	request.Host = host
	response, err := web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		return fmt.Errorf("%s answers %d", host, response.StatusCode)
	}
	return nil
}
