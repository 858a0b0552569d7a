//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestRecipes follows the page from which people copy routes.
func TestRecipes(t *testing.T) {
	t.Parallel()
	recipes := strings.Join(readGuide(t, "../../docs/guide/recipes.md").yaml, "\n---\n")
	recipes = strings.NewReplacer("metadata: {name: ", "metadata: {namespace: "+siteNamespace+", name: ",
		"parentRefs: [{name: web", "parentRefs: [{name: gw", "{name: app, port", "{name: v1, port", "{name: canary, port", "{name: v2, port").Replace(recipes)
	s := startSite(t, map[string]string{"recipes.yaml": recipes}, "--experimental")
	for target, c := range map[string]struct {
		headers map[string]string
		want    string // where to, who answers for which path, or the code
	}{
		"http://secure.example.com/a?b=c":       {nil, "301 https://secure.example.com/a?b=c"},
		"http://old.example.com/docs/a?b=c":     {nil, "302 http://old.example.com/manual/a?b=c"},
		"http://old.example.com/a":              {nil, "301 http://new.example.com/a"},
		"http://prefix.example.com/api/users":   {nil, "v1 /users"},
		"http://prefix.example.com/api":         {nil, "v1 /"},
		"http://prefix.example.com/apis":        {nil, "404"},
		"http://testers.example.com/":           {nil, "v1 /"},
		"http://testers.example.com/a":          {map[string]string{"X-Tester": "yes"}, "v2 /a"},
		"http://testers.example.com/b":          {map[string]string{"Cookie": "a=b; tester=1"}, "v2 /b"},
		"http://testers.example.com/c?tester=1": {nil, "v2 /c"},
		"http://testers.example.com/drafts":     {nil, "v1 /drafts"},
		"http://testers.example.com/v2/beta/x":  {nil, "v2 /v2/beta/x"},
		"http://testers.example.com/v2/betas":   {nil, "v1 /v2/betas"},
		"http://headers.example.com/":           {nil, "v1 /"},
		"http://mirror.example.com/":            {nil, "v1 /"},
		"http://shut.example.com/":              {nil, "401"},
		"http://shut.example.com/health":        {nil, "v1 /health"},
		"http://shut.example.com/a":             {map[string]string{"X-API-Key": "7f0c2e1d8a9b4c53"}, "v1 /a"},
		"http://patient.example.com/":           {nil, "v1 /"},
		"http://called.example.com/":            {map[string]string{"Origin": "https://shop.example.com"}, "v1 /"},
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		o, err := (&clientCall{method: http.MethodGet, url: u, address: s.address, headers: c.headers}).do(context.Background())
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		got := fmt.Sprint(o.status)
		switch {
		case o.headers.Get("Location") != "":
			ports := strings.NewReplacer(fmt.Sprintf(":%d", 80+portOffset), "", fmt.Sprintf(":%d", 443+portOffset), "") // moved by the test
			got += " " + ports.Replace(o.headers.Get("Location"))
		case o.status == http.StatusOK:
			got = o.answer.Name + " " + o.answer.Path
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", target, got, c.want)
		}
	}
	weights := map[string]int{}
	for range 300 {
		o, err := s.call("http://weights.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		weights[o.answer.Name]++
	}
	if weights["v1"] < 240 || weights["v2"] < 10 {
		t.Errorf("of 300 requests the backends get %v, want nine of ten for v1", weights)
	}
	o, err := s.call("http://headers.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if o.headers.Get("Strict-Transport-Security") == "" || o.answer.Headers.Get("X-Env") != "production" {
		t.Errorf("the headers are %v, those of the request %v", o.headers, o.answer.Headers)
	}
	s.says(t, "AuthPolicy shut", "in force")
}
