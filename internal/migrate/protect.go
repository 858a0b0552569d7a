package migrate

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// ranges reads a list of addresses and networks; wrong is the first one that is neither.
func ranges(list string) (out []string, wrong string) {
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if network, err := netip.ParsePrefix(text); err == nil {
			out = append(out, network.Masked().String())
		} else if address, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(address, address.BitLen()).String())
		} else {
			return nil, text
		}
	}
	return out, ""
}

func allowed(_ *conversion, in *ingress, value string) (Verdict, string) {
	return in.parts.addresses(value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Allow })
}

func denied(_ *conversion, in *ingress, value string) (Verdict, string) {
	return in.parts.addresses(value, func(a *v1alpha1.AuthAddresses) *[]string { return &a.Deny })
}

func (p *parts) addresses(value string, of func(*v1alpha1.AuthAddresses) *[]string) (Verdict, string) {
	list, wrong := ranges(value)
	if wrong != "" {
		return NotPossible, fmt.Sprintf("%q is neither an address nor a network", wrong)
	}
	if len(list) == 0 {
		return NotNeeded, "it is empty"
	}
	if p.authorization["addresses"].Addresses == nil {
		p.authorize("addresses", v1alpha1.Authorization{Addresses: &v1alpha1.AuthAddresses{}})
	}
	to := of(p.authorization["addresses"].Addresses)
	*to = append(*to, list...)
	return "", ""
}

func (p *parts) authorize(name string, rule v1alpha1.Authorization) {
	if p.authorization == nil {
		p.authorization = map[string]v1alpha1.Authorization{}
	}
	p.authorization[name] = rule
}

// basicAuth asks for names and passwords.
func basicAuth(c *conversion, in *ingress, value string) (Verdict, string) {
	if value != "basic" {
		return NotPossible, fmt.Sprintf("auth-type %s: %s, with basic, keys or tokens", value, byPolicy)
	}
	name := in.annotation("auth-secret")
	if name == "" {
		return NotPossible, "auth-secret is missing"
	}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		if namespace != in.Namespace {
			return NotPossible, fmt.Sprintf("the Secret %s is in another namespace than the Ingress: copy it", name)
		}
		name = rest
	}
	if kind := cmp.Or(in.annotation("auth-secret-type"), "auth-file"); kind != "auth-file" {
		return NotPossible, fmt.Sprintf("auth-secret-type %s: write the users into one entry, auth, a line NAME:HASH for each, and name the type auth-file", kind)
	}
	in.parts.authentication = map[string]v1alpha1.Authentication{"people": {Basic: &v1alpha1.Basic{
		SecretRef: v1alpha1.KeyRef{Name: name, Key: "auth"}, Realm: in.annotation("auth-realm"),
	}}}
	if users := c.unreadable(in.Namespace, name); len(users) > 0 {
		return Differs, fmt.Sprintf("AuthPolicy, basic; Secret %s has other hashes than {SHA} for %s, who can't pass until it is written with htpasswd -s", name, strings.Join(users, ", "))
	}
	return "", ""
}

// unreadable are the users of a Secret whose passwords are hashed in a way that Envoy doesn't read.
func (c *conversion) unreadable(namespace, name string) (users []string) {
	for _, s := range c.input.Secrets {
		if s.Namespace != namespace || s.Name != name {
			continue
		}
		text := string(s.Data["auth"]) + s.StringData["auth"]
		for line := range strings.Lines(text) {
			user, hash, ok := strings.Cut(strings.TrimSpace(line), ":")
			if ok && !strings.HasPrefix(hash, "{SHA}") {
				users = append(users, user)
			}
		}
	}
	return users
}

// satisfy is about who needs only one of addresses and credentials.
func satisfy(_ *conversion, _ *ingress, value string) (Verdict, string) {
	if value != "any" {
		return NotNeeded, "both are needed anyway"
	}
	return NotPossible, ""
}

// external asks a service. ingress-nginx asks it on one path, whatever the request's path is.
func external(_ *conversion, in *ingress, value string) (Verdict, string) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return NotPossible, fmt.Sprintf("%q is no URL", value)
	}
	return NotPossible, fmt.Sprintf("write an AuthPolicy with external for the Service behind %s, and see that the service decides by the path of the request: "+
		"it is asked with the client's path behind external.http.path, and not on %s alone", u.Host, cmp.Or(u.Path, "/"))
}

// rate limits how often an address may ask. nginx lets a burst through at once and then one request after
// the other; the window is as long as it takes to let a burst through.
func rate(kind, unit string) func(*conversion, *ingress, string) (Verdict, string) {
	return func(_ *conversion, in *ingress, value string) (Verdict, string) {
		limit, err := strconv.Atoi(value)
		if err != nil || limit <= 0 {
			return NotNeeded, "it is no number over 0, and limits nothing"
		}
		burst := 5
		if n, err := strconv.Atoi(in.annotation("limit-burst-multiplier")); err == nil && n >= 1 {
			burst = n
		}
		if in.parts.limits == nil {
			in.parts.limits = map[string]v1alpha1.RateLimit{}
		}
		in.parts.limits[kind] = v1alpha1.RateLimit{
			Rates:    []v1alpha1.Rate{{Limit: int32(min(limit*burst, 1_000_000_000)), Window: gwv1.Duration(strconv.Itoa(burst) + unit)}}, //nolint:gosec // bounded
			Counters: []string{"client.address"}, Stage: v1alpha1.BeforeAuthentication,
		}
		return "", ""
	}
}
