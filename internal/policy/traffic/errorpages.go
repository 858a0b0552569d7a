package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	maxPages    = 16
	bodyKey     = "body" // of a ConfigMap
	defaultPage = "text/html; charset=utf-8"
)

var (
	errorStatus  = regexp.MustCompile(`^[45]([0-9][0-9]|xx)$`)
	pageMimeType = regexp.MustCompile(`^[A-Za-z0-9!#$&^_.+-]+/[ -~]*[!-~]$`)
)

func (r *reader) errorPages(in *v1alpha1.ErrorPages, out *ir.Traffic) {
	pages := &ir.ErrorPages{}
	out.ErrorPages = pages
	switch {
	case in.Disabled && len(in.Pages) > 0:
		r.Problem(".disabled", "is true, and there are pages beside it; leave out either it or them")
		return
	case !in.Disabled && len(in.Pages) == 0:
		r.Problem(".pages", "is empty; write a page, or disabled: true")
		return
	case len(in.Pages) > maxPages:
		r.Problem(".pages", "has %d pages; there may be %d", len(in.Pages), maxPages)
		return
	}
	texts := 0
	for i := range in.Pages {
		page, field := &in.Pages[i], fmt.Sprintf(".pages[%d]", i)
		body, ok := r.page(field, page)
		texts += len(body)
		p := ir.ErrorPage{Statuses: page.Statuses, Body: body, ContentType: cmp.Or(page.ContentType, defaultPage), Own: page.From == v1alpha1.ErrorsOfGateway}
		if len(page.Statuses) == 0 {
			r.Problem(field+".statuses", "is empty; write statuses such as 404 or 5xx")
		}
		for j, status := range page.Statuses {
			field := fmt.Sprintf("%s.statuses[%d]", field, j)
			switch {
			case !errorStatus.MatchString(status):
				r.Problem(field, "is %q; write a status such as 404, 4xx or 5xx", status)
			case status == "401" || status == "407":
				r.Problem(field, "is %s, whose answers have headers by which browsers ask for a password, and a page has none; leave it out", status)
			}
		}
		if !pageMimeType.MatchString(p.ContentType) {
			r.Problem(field+".contentType", "is %q; write a type such as text/html; charset=utf-8", p.ContentType)
		}
		if page.From != "" && page.From != v1alpha1.ErrorsOfAny && page.From != v1alpha1.ErrorsOfGateway {
			r.Problem(field+".from", "is %q; write Any or Gateway", page.From)
		}
		if ok {
			pages.Pages = append(pages.Pages, p)
		}
	}
	if texts > ir.MaxBody {
		r.Problem(".pages", "have texts of %d bytes together; there may be %d", texts, ir.MaxBody)
	}
	if len(pages.Pages) == 0 { // without pages it would be as disabled
		r.Problems, r.lacking = append(r.Problems, r.lacking...), nil
	}
}

// page returns the text of a page, from wherever it is, and whether it is there. One that is missing costs the page and
// not the others.
func (r *reader) page(field string, page *v1alpha1.ErrorPage) (body string, ok bool) {
	switch ref := page.ConfigMapRef; {
	case ref != nil && page.Body != nil:
		r.Problem(field+".configMapRef", "stands beside body; leave out one of the two")
	case page.Body != nil:
		body = *page.Body
	case ref == nil:
		r.Problem(field+".body", "is missing; write the text there, or a ConfigMap that has it into configMapRef")
	default:
		field += ".configMapRef"
		name, key := object.Name{Namespace: r.namespace, Name: ref.Name}, cmp.Or(ref.Key, bodyKey)
		data, exists := r.configMap(name)
		if !exists {
			r.lacking = append(r.lacking, condition.ConfigMapMissing(r.Field+field, name.String()))
			return "", false
		}
		if body, ok = data[key]; !ok {
			r.lacking = append(r.lacking, condition.ConfigMapWithout(r.Field+field, name.String(), key, slices.Sorted(maps.Keys(data))))
			return "", false
		}
	}
	return body, true
}

// Contents yields the ConfigMaps that a policy refers to.
func Contents(o *v1alpha1.TrafficPolicy, yield func(object.Name)) {
	_, _, says := layerOf(o)
	if says.Response.ErrorPages == nil {
		return
	}
	for i := range says.Response.ErrorPages.Pages {
		if ref := says.Response.ErrorPages.Pages[i].ConfigMapRef; ref != nil {
			yield(object.Name{Namespace: o.Namespace, Name: ref.Name})
		}
	}
}

// Texts writes what a policy says that is from elsewhere.
func (p *Policy) Texts(write func(string)) {
	for _, rule := range p.Asks {
		if pages := rule.Value.ErrorPages; pages != nil {
			for i := range pages.Pages {
				write(pages.Pages[i].Body)
			}
		}
	}
}
