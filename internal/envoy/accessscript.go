package envoy

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

//go:embed access.lua
var accessSource string

//go:embed accessanswer.lua
var accessAnswerSource string

//go:embed accessrefusal.lua
var accessRefusalSource string

//go:embed accesshide.lua
var accessHideSource string

//go:embed accessclaims.lua
var accessClaimsSource string

// The sources without what is there for people: there may be many copies.
var (
	accessScript, accessAnswer  = compact(accessSource), compact(accessAnswerSource)
	accessRefusal, accessClaims = compact(accessRefusalSource), compact(accessClaimsSource)
	accessHide                  = compact(accessHideSource)
)

func compact(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// keysInFunction bounds the entries that one function of the script makes: a function has at
// most 65,536 constants, and each entry is two.
const keysInFunction = 10_000

// credentials is the script with the keys and passwords that it knows.
func credentials(a *ir.Access) (message, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "local required = %t\n", a.Authenticated)
	if a.Login != nil {
		b.WriteString(loginLead(a.Login) + leadIn)
	}
	if hides(a) {
		if a.Login == nil {
			b.WriteString(cookiesLead)
		}
		b.WriteString(accessHide)
	}
	challenges, err := challenges(a)
	if err != nil {
		return nil, err
	}
	refusal(&b, a, challenges...)
	claims(&b, a.Tokens)
	b.WriteString("local rules = {}\n")
	for i := range a.Keys {
		k := &a.Keys[i]
		b.WriteString("do local rule = {keys = {}, from = {")
		for _, from := range k.From {
			b.WriteString(luaSource(from))
		}
		fmt.Fprintf(&b, "}, salt = %s%s%s} rules[#rules + 1] = rule\n", luaText(k.Salt), luaField("header", k.Header), luaHide(k.Hide))
		luaTable(&b, "rule.keys", len(k.Keys), func(i int) (string, string) { return k.Keys[i].Sum.Reveal(), k.Keys[i].Client })
		b.WriteString("end\n")
	}
	for i := range a.Passwords {
		p := &a.Passwords[i]
		fmt.Fprintf(&b, "do local rule = {users = {}, salt = %s%s%s} rules[#rules + 1] = rule\n", luaText(p.Salt), luaField("header", p.Header), luaHide(p.Hide))
		luaTable(&b, "rule.users", len(p.Users), func(i int) (string, string) { return p.Users[i].User, p.Users[i].Sum.Reveal() })
		b.WriteString("end\n")
	}
	for i := range a.Certificates {
		c := &a.Certificates[i]
		any := ""
		if len(c.DNS)+len(c.URIs) == 0 {
			any = ", any = true"
		}
		fmt.Fprintf(&b, "do local rule = {hosts = {}, uris = {}%s%s} rules[#rules + 1] = rule\n", any, luaField("header", c.Header))
		luaTable(&b, "rule.hosts", len(c.DNS), func(i int) (string, string) { return c.DNS[i], c.DNS[i] })
		luaTable(&b, "rule.uris", len(c.URIs), func(i int) (string, string) { return c.URIs[i], c.URIs[i] })
		b.WriteString("end\n")
	}
	b.WriteString(accessScript)
	if a.Forbidden != nil { // costs each answer a call
		luaAnswer(&b, "forbidden", a.Forbidden)
		b.WriteString(accessAnswer)
	}
	return &luav3.Lua{
		DefaultSourceCode: inlined(b.String()),
		// The route that has been chosen is the one whose policy is asked here.
		ClearRouteCache: wrapperspb.Bool(false),
	}, nil
}

// refusal is what a script needs to refuse those without credentials, who are told to have them.
func refusal(b *strings.Builder, a *ir.Access, challenges ...string) {
	fmt.Fprintf(b, "local challenges = {%s}\n", strings.Join(challenges, ", "))
	luaAnswer(b, "unauthenticated", a.Unauthenticated)
	b.WriteString(accessRefusal)
}

// claims is what a script needs to tell the backend what tokens say; nothing where there are none.
func claims(b *strings.Builder, issuers []ir.TokenIssuer) {
	if len(issuers) == 0 {
		return
	}
	b.WriteString("local issuers = {")
	for i := range issuers {
		t := &issuers[i]
		for n, mark := range tokenMarks(t) {
			fmt.Fprintf(b, "{mark = %s, headers = {", luaText(mark))
			for _, h := range t.Headers {
				fmt.Fprintf(b, "{header = %s, claim = {", luaText(h.Header))
				for _, name := range h.Claim {
					b.WriteString(luaText(name) + ",")
				}
				b.WriteString("}},")
			}
			b.WriteString("}")
			if t.Hide {
				b.WriteString(", from = " + strings.TrimSuffix(luaSource(t.From[n]), ","))
			}
			b.WriteString("},")
		}
	}
	b.WriteString("}\n" + accessClaims)
}

// hides reports whether an Access takes credentials away from requests.
func hides(a *ir.Access) bool {
	return slices.ContainsFunc(a.Tokens, func(t ir.TokenIssuer) bool { return t.Hide }) ||
		slices.ContainsFunc(a.Keys, func(k ir.APIKeys) bool { return k.Hide }) ||
		slices.ContainsFunc(a.Passwords, func(p ir.Passwords) bool { return p.Hide })
}

// luaHide is a further field of a table, which says that credentials are taken away.
func luaHide(is bool) string {
	if !is {
		return ""
	}
	return ", hide = true"
}

// challenges are what those without credentials are told to have (RFC 9110, section 11.6.1).
func challenges(a *ir.Access) (all []string, err error) {
	if len(a.Tokens) > 0 {
		all = append(all, luaText("Bearer"))
	}
	for i := range a.Passwords {
		realm := a.Passwords[i].Realm
		if strings.ContainsFunc(realm, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, errors.New("the realm of passwords is no plain text")
		}
		all = append(all, luaText(`Basic realm="`+realm+`", charset="UTF-8"`))
	}
	if len(all) == 0 && len(a.Keys) > 0 {
		all = append(all, luaText("ApiKey"))
	}
	return all, nil
}

func luaSource(from ir.CredentialSource) string {
	switch {
	case from.Header != "" && from.Prefix != "":
		return "{header = " + luaText(from.Header) + ", prefix = " + luaText(strings.ToLower(from.Prefix)) + "},"
	case from.Header != "":
		return "{header = " + luaText(from.Header) + "},"
	case from.Query != "":
		return "{query = " + luaText(from.Query) + "},"
	default:
		return "{cookie = " + luaText(from.Cookie) + "},"
	}
}

// luaField is a further field of a table; nothing where it is empty.
func luaField(name, value string) string {
	if value == "" {
		return ""
	}
	return ", " + name + " = " + luaText(value)
}

// luaAnswer is what those are told who don't pass; nothing for the default.
func luaAnswer(b *strings.Builder, name string, a *ir.AccessAnswer) {
	if a == nil {
		return
	}
	fmt.Fprintf(b, "local %s = {body = %s, headers = {[\":status\"] = \"%d\"", name, luaText(a.Body), a.Status)
	for _, h := range a.Headers {
		fmt.Fprintf(b, ", [%s] = %s", luaText(h.Name), luaText(h.Value))
	}
	b.WriteString("}}\n")
}

// luaTable fills a table.
func luaTable(b *strings.Builder, name string, n int, entry func(int) (key, value string)) {
	for begin := 0; begin < n; begin += keysInFunction {
		fmt.Fprintf(b, ";(function() local t = %s\n", name)
		for i := begin; i < min(n, begin+keysInFunction); i++ {
			key, value := entry(i)
			if strings.ContainsFunc(key+value, unicode.IsControl) {
				continue // backends are told of clients by name
			}
			fmt.Fprintf(b, "t[%s] = %s\n", luaText(key), luaText(value))
		}
		b.WriteString("end)();\n")
	}
}

// luaText is a text as a constant of the script: whatever is in it can't end it.
func luaText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ' ' || c == '-' || c == '_' || c == '.' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "\\%03d", c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
