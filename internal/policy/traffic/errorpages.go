package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

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
		p := ir.ErrorPage{Statuses: page.Statuses, ContentType: cmp.Or(page.ContentType, defaultPage), Own: page.From == v1alpha1.ErrorsOfGateway}
		ok := r.page(field, page, &p)
		texts += len(p.Body)
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
		if page.BackendRef == nil && !pageMimeType.MatchString(p.ContentType) {
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

// page reads what a page is, from wherever it is, and returns whether it is there. One that is missing costs the page and
// not the others.
func (r *reader) page(field string, page *v1alpha1.ErrorPage, out *ir.ErrorPage) bool {
	switch ref := page.ConfigMapRef; {
	case page.BackendRef != nil:
		return r.askedPage(field, page, out)
	case ref != nil && page.Body != nil:
		r.Problem(field+".configMapRef", "stands beside body; leave out one of the two")
	case page.Body != nil:
		out.Body = *page.Body
	case ref == nil:
		r.Problem(field+".body", "is missing; write the text there, or a ConfigMap that has it into configMapRef, or a backend into backendRef")
	default:
		field += ".configMapRef"
		name, key := object.Name{Namespace: r.namespace, Name: ref.Name}, cmp.Or(ref.Key, bodyKey)
		data, exists := r.configMap(name)
		if !exists {
			r.lacking = append(r.lacking, condition.ConfigMapMissing(r.Field+field, name.String()))
			return false
		}
		var ok bool
		if out.Body, ok = data[key]; !ok {
			r.lacking = append(r.lacking, condition.ConfigMapWithout(r.Field+field, name.String(), key, slices.Sorted(maps.Keys(data))))
			return false
		}
	}
	return true
}

// askedPage reads what is asked for a page. Which backend that is depends on other policies, and is found out later.
func (r *reader) askedPage(field string, page *v1alpha1.ErrorPage, out *ir.ErrorPage) bool {
	switch {
	case page.Body != nil || page.ConfigMapRef != nil:
		r.Problem(field+".backendRef", "stands beside a text; leave out one of the two")
		return true
	case page.ContentType != "":
		r.Problem(field+".contentType", "stands beside backendRef, whose answers have a type; leave it out")
		return true
	case page.From != "":
		r.Problem(field+".from", "stands beside backendRef, which is asked whoever has answered; leave it out")
		return true
	}
	ref := page.BackendRef
	out.ContentType = ""
	out.Asked = &ir.PageReference{
		From: r.namespace, Group: string(ptr.Deref(ref.Group, "")), Kind: string(ptr.Deref(ref.Kind, "Service")),
		Namespace: string(ptr.Deref(ref.Namespace, gwv1.Namespace(r.namespace))), Name: string(ref.Name), Port: ptr.Deref(ref.Port, 0),
	}
	return true
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

// Asked yields what the pages of a policy ask, with the field that says so.
func (p *Policy) Asked(yield func(field string, ref *ir.PageReference)) {
	_, field, says := layerOf(p.Object)
	if says.Response.ErrorPages == nil {
		return
	}
	r := reader{namespace: p.Name.Namespace}
	for i := range says.Response.ErrorPages.Pages {
		at, page, out := fmt.Sprintf("%s.response.errorPages.pages[%d]", field, i), &says.Response.ErrorPages.Pages[i], ir.ErrorPage{}
		if page.BackendRef != nil && r.askedPage("", page, &out) && out.Asked != nil {
			yield(at+".backendRef", out.Asked)
		}
	}
}

// Texts writes what a policy says that is from elsewhere.
func (p *Policy) Texts(write func(string)) {
	for _, rule := range p.Asks {
		if pages := rule.Value.ErrorPages; pages != nil {
			for i := range pages.Pages {
				write(pages.Pages[i].Body)
				if asked := pages.Pages[i].Asked; asked != nil {
					write(fmt.Sprint(*asked))
				}
			}
		}
	}
}
