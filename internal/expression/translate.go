package expression

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// variable is what expressions may ask about, and how Envoy is asked about it.
type variable struct {
	name  string
	of    *cel.Type
	envoy func(*translation) *exprpb.Expr
	found func(*translation) *exprpb.Expr // whether it is there; nil where it always is
}

const (
	headers = "request.headers"
	claims  = "auth.claims"
)

var variables = []variable{
	// The path without the query, after it has been normalized: what routes match.
	{"request.path", cel.StringType, func(t *translation) *exprpb.Expr { return t.field(t.ident("request"), "url_path") }, nil},
	{"request.query", cel.StringType, func(t *translation) *exprpb.Expr { return t.field(t.ident("request"), "query") }, nil},
	{"request.method", cel.StringType, func(t *translation) *exprpb.Expr { return t.field(t.ident("request"), "method") }, nil},
	{"request.host", cel.StringType, (*translation).host, nil},
	{headers, cel.MapType(cel.StringType, cel.StringType), func(t *translation) *exprpb.Expr { return t.field(t.ident("request"), "headers") }, nil},
	{
		claims, cel.MapType(cel.StringType, cel.DynType),
		func(t *translation) *exprpb.Expr { return t.metadata(TokenFilter, TokenKey) },
		func(t *translation) *exprpb.Expr { return t.found(TokenFilter, TokenKey) },
	},
	{
		"auth.client", cel.StringType,
		func(t *translation) *exprpb.Expr { return t.metadata(ClientFilter, ClientKey) },
		func(t *translation) *exprpb.Expr { return t.found(ClientFilter, ClientKey) },
	},
}

// Where Envoy's filters say what they have found out: the claims of the token, and the name of
// the client.
const (
	TokenFilter  = "envoy.filters.http.jwt_authn" //nolint:gosec // a name
	TokenKey     = "jwt"
	ClientFilter = "gatehouse.access"
	ClientKey    = "client"
)

func variableNames() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

const (
	// maxDepth is how deep calls may stand in each other: Envoy reads messages of at most a
	// hundred levels, and a call is two.
	maxDepth = 24
	// maxProgram is how large the program of a regular expression may be that Envoy runs.
	maxProgram = 100
)

// translation puts an expression into Envoy's terms, up to the first thing that is wrong.
type translation struct {
	last  int64 // the id of the last node that has been made
	at    int64 // the node that is wrong
	wrong string
}

func (t *translation) refuse(e *exprpb.Expr, format string, args ...any) *exprpb.Expr {
	if t.wrong == "" {
		t.at, t.wrong = e.Id, fmt.Sprintf(format, args...)
	}
	return e
}

// expr translates an expression that stands so deep in others.
func (t *translation) expr(e *exprpb.Expr, depth int) *exprpb.Expr {
	if depth > maxDepth {
		return t.refuse(e, "parts of the expression stand more than %d deep in each other", maxDepth)
	}
	switch k := e.ExprKind.(type) {
	case *exprpb.Expr_ConstExpr:
		return t.made(&exprpb.Expr{ExprKind: k})
	case *exprpb.Expr_IdentExpr:
		for _, v := range variables {
			switch k.IdentExpr.Name {
			case v.name:
				return v.envoy(t)
			case hasVariable(v.name):
				return v.found(t)
			}
		}
		return t.refuse(e, "%s is no variable; there are %s", k.IdentExpr.Name, strings.Join(variableNames(), ", "))
	case *exprpb.Expr_SelectExpr:
		if k.SelectExpr.TestOnly && isClaim(k.SelectExpr.Operand) {
			return t.claimFound(e, depth)
		}
		name := k.SelectExpr.Field
		if isHeaders(k.SelectExpr.Operand) {
			name = strings.ToLower(name)
		}
		return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_SelectExpr{SelectExpr: &exprpb.Expr_Select{
			Operand: t.expr(k.SelectExpr.Operand, depth+1), Field: name, TestOnly: k.SelectExpr.TestOnly,
		}}})
	case *exprpb.Expr_ListExpr:
		list := &exprpb.Expr_CreateList{}
		for _, element := range k.ListExpr.Elements {
			list.Elements = append(list.Elements, t.expr(element, depth+1))
		}
		return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_ListExpr{ListExpr: list}})
	case *exprpb.Expr_CallExpr:
		return t.call(e, k.CallExpr, depth)
	default:
		return t.refuse(e, "Envoy has no such expressions; write it with comparisons, && and ||")
	}
}

func (t *translation) call(e *exprpb.Expr, c *exprpb.Expr_Call, depth int) *exprpb.Expr {
	args := slices.Clone(c.Args)
	if c.Target != nil {
		args = slices.Insert(args, 0, c.Target)
	}
	switch c.Function {
	case overloads.Contains, overloads.Matches:
		text, ok := literal(args[1])
		if !ok {
			return t.refuse(args[1], "what %s looks for must stand in the expression, as a text", c.Function)
		}
		if c.Function == overloads.Matches {
			if size, err := re2.SizeUTF8(text); err != nil {
				return t.refuse(args[1], "%q is no regular expression that can be used here: %v", text, err)
			} else if size > maxProgram {
				return t.refuse(args[1], "the regular expression is too large for Envoy: its program has up to %d instructions, of at most %d", size, maxProgram)
			}
		}
	case operators.Index: // map[key]
		if isHeaders(args[0]) {
			args[1] = inLowerCase(args[1])
		}
	case operators.In: // key in map
		if isHeaders(args[1]) {
			args[0] = inLowerCase(args[0])
		}
		if args[1].GetIdentExpr().GetName() == claims {
			return t.and(t.found(TokenFilter, TokenKey), t.function(operators.In, t.expr(args[0], depth+1), t.expr(args[1], depth+1)))
		}
	}
	out := &exprpb.Expr_Call{Function: c.Function}
	for i, arg := range args {
		arg = t.expr(arg, depth+1)
		if i == 0 && c.Target != nil {
			out.Target = arg
		} else {
			out.Args = append(out.Args, arg)
		}
	}
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_CallExpr{CallExpr: out}})
}

// isHeaders reports whether an expression is the headers of the request, whose names Envoy has
// in lower case.
func isHeaders(e *exprpb.Expr) bool { return e.GetIdentExpr().GetName() == headers }

// isClaim reports whether an expression is a claim, or all of them.
func isClaim(e *exprpb.Expr) bool {
	switch {
	case e.GetSelectExpr() != nil:
		return isClaim(e.GetSelectExpr().Operand)
	case e.GetCallExpr().GetFunction() == operators.Index:
		return isClaim(e.GetCallExpr().Args[0])
	}
	return e.GetIdentExpr().GetName() == claims
}

// claimFound is whether a claim is there: what it is inside of, up to the token, may not be either.
func (t *translation) claimFound(e *exprpb.Expr, depth int) *exprpb.Expr {
	if depth > maxDepth {
		return t.refuse(e, "parts of the expression stand more than %d deep in each other", maxDepth)
	}
	if s := e.GetSelectExpr(); s != nil {
		return t.and(t.claimFound(s.Operand, depth+1), t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_SelectExpr{
			SelectExpr: &exprpb.Expr_Select{Operand: t.expr(s.Operand, depth+1), Field: s.Field, TestOnly: true},
		}}))
	}
	if c := e.GetCallExpr(); c != nil {
		return t.and(t.claimFound(c.Args[0], depth+1), t.function(operators.In, t.expr(c.Args[1], depth+1), t.expr(c.Args[0], depth+1)))
	}
	return t.found(TokenFilter, TokenKey)
}

func inLowerCase(e *exprpb.Expr) *exprpb.Expr {
	text, ok := literal(e)
	if !ok {
		return e
	}
	return constant(strings.ToLower(text))
}

func literal(e *exprpb.Expr) (string, bool) {
	c, ok := e.GetConstExpr().GetConstantKind().(*exprpb.Constant_StringValue)
	if !ok {
		return "", false
	}
	return c.StringValue, true
}

func constant(text string) *exprpb.Expr {
	return &exprpb.Expr{ExprKind: &exprpb.Expr_ConstExpr{ConstExpr: &exprpb.Constant{ConstantKind: &exprpb.Constant_StringValue{StringValue: text}}}}
}

// made gives a node an id of its own.
func (t *translation) made(e *exprpb.Expr) *exprpb.Expr {
	t.last++
	e.Id = t.last
	return e
}

func (t *translation) ident(name string) *exprpb.Expr {
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_IdentExpr{IdentExpr: &exprpb.Expr_Ident{Name: name}}})
}

func (t *translation) field(of *exprpb.Expr, name string) *exprpb.Expr {
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_SelectExpr{SelectExpr: &exprpb.Expr_Select{Operand: of, Field: name}}})
}

func (t *translation) text(text string) *exprpb.Expr { return t.made(constant(text)) }

func (t *translation) number(n int64) *exprpb.Expr {
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_ConstExpr{ConstExpr: &exprpb.Constant{ConstantKind: &exprpb.Constant_Int64Value{Int64Value: n}}}})
}

func (t *translation) function(name string, args ...*exprpb.Expr) *exprpb.Expr {
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_CallExpr{CallExpr: &exprpb.Expr_Call{Function: name, Args: args}}})
}

func (t *translation) method(of *exprpb.Expr, name string, args ...*exprpb.Expr) *exprpb.Expr {
	return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_CallExpr{CallExpr: &exprpb.Expr_Call{Target: of, Function: name, Args: args}}})
}

// metadata is what a filter has found out.
func (t *translation) metadata(filter, key string) *exprpb.Expr {
	all := t.field(t.ident("metadata"), "filter_metadata")
	return t.function(operators.Index, t.function(operators.Index, all, t.text(filter)), t.text(key))
}

// found is whether a filter has found something out. It is no error that it has found out nothing at all.
func (t *translation) found(filter, key string) *exprpb.Expr {
	all := func() *exprpb.Expr { return t.field(t.ident("metadata"), "filter_metadata") }
	return t.and(
		t.function(operators.In, t.text(filter), all()),
		t.function(operators.In, t.text(key), t.function(operators.Index, all(), t.text(filter))),
	)
}

func (t *translation) and(a, b *exprpb.Expr) *exprpb.Expr {
	return t.function(operators.LogicalAnd, a, b)
}

// host is the host that is asked for, as routes match it: in lower case and without the port. An
// address in brackets is as the client writes it, with the port.
func (t *translation) host() *exprpb.Expr {
	lower := func() *exprpb.Expr { return t.method(t.field(t.ident("request"), "host"), "lowerAscii") }
	return t.function(operators.Conditional,
		t.method(t.field(t.ident("request"), "host"), overloads.StartsWith, t.text("[")),
		lower(),
		t.function(operators.Index, t.method(lower(), "split", t.text(":")), t.number(0)),
	)
}

// HeaderIn is true of requests that have a header, whose name is in lower case, with one of some
// values. One that is there twice has a value with a comma, which is none of them.
func HeaderIn(name string, values []string) *exprpb.Expr {
	t := translation{}
	list := &exprpb.Expr_CreateList{}
	for _, v := range values {
		list.Elements = append(list.Elements, t.text(v))
	}
	header := t.function(operators.Index, t.field(t.ident("request"), "headers"), t.text(name))
	return t.function(operators.In, header, t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_ListExpr{ListExpr: list}}))
}

// OwnOrigin is true of requests that change nothing by their method, and of those that a page of the host asked for, or of one of
// some origins, has a browser send. Who sends no Origin is none of these.
func OwnOrigin(others []string) *exprpb.Expr {
	t := translation{}
	list := func(values []string) *exprpb.Expr {
		l := &exprpb.Expr_CreateList{}
		for _, v := range values {
			l.Elements = append(l.Elements, t.text(v))
		}
		return t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_ListExpr{ListExpr: l}})
	}
	origin := func() *exprpb.Expr {
		return t.function(operators.Index, t.field(t.ident("request"), "headers"), t.text("origin"))
	}
	or := func(a, b *exprpb.Expr) *exprpb.Expr { return t.function(operators.LogicalOr, a, b) }
	scheme := func(text string) *exprpb.Expr { return t.method(origin(), overloads.StartsWith, t.text(text)) }
	// As a whole, with the port: what is not standard is another origin.
	own := t.function(operators.Equals, t.method(t.field(t.ident("request"), "host"), "lowerAscii"),
		t.function(operators.Index, t.method(origin(), "split", t.text("://")), t.number(1)))
	return or(
		t.function(operators.In, t.field(t.ident("request"), "method"), list([]string{"GET", "HEAD", "OPTIONS", "TRACE"})),
		or(t.function(operators.In, origin(), list(others)), t.and(or(scheme("https://"), scheme("http://")), own)),
	)
}

// And is true where all of some expressions are; nil for none. They are those of HeaderIn.
func And(all []*exprpb.Expr) *exprpb.Expr {
	switch n := len(all); n {
	case 0:
		return nil
	case 1:
		return all[0]
	default: // in halves, which are not deep
		t := translation{}
		return t.function(operators.LogicalAnd, And(all[:n/2]), And(all[n/2:]))
	}
}

// Not returns an expression that is true where another is false.
func Not(e *exprpb.Expr) *exprpb.Expr {
	const first = 1 << 32 // no id of a translation's
	t := translation{last: first}
	return t.function(operators.LogicalNot, e)
}

// TextUnless gives a text, and an error where a filter has found out something that has the name
// key. Nothing else is an error, also not that the filter has found out nothing at all.
func TextUnless(filter, key, text string) *exprpb.Expr {
	t := translation{}
	return t.function(operators.Conditional, t.found(filter, key), t.failure(), t.text(text))
}

// failure is an error.
func (t *translation) failure() *exprpb.Expr {
	return t.function(operators.Index, t.field(t.ident("metadata"), "filter_metadata"), t.text("")) // no filter has such a name
}

// Text gives a text.
func Text(text string) *exprpb.Expr { return constant(text) }

// IfAnswered is another expression, that of Text or TextUnless, where a request has been answered with
// one of some statuses, and an error where not.
func IfAnswered(statuses []int64, e *exprpb.Expr) *exprpb.Expr {
	const first = 1 << 32 // no id of a translation's
	t := translation{last: first}
	list := &exprpb.Expr_CreateList{}
	for _, s := range statuses {
		list.Elements = append(list.Elements, t.made(&exprpb.Expr{
			ExprKind: &exprpb.Expr_ConstExpr{ConstExpr: &exprpb.Constant{ConstantKind: &exprpb.Constant_Int64Value{Int64Value: s}}},
		}))
	}
	return t.function(operators.Conditional,
		t.function(operators.In, t.field(t.ident("response"), "code"), t.made(&exprpb.Expr{ExprKind: &exprpb.Expr_ListExpr{ListExpr: list}})),
		e, t.failure(),
	)
}

// AsksWho reports whether an expression, as Condition returns it, asks who a client is. One that
// has a text like the name of such a filter is taken to.
func AsksWho(e *exprpb.Expr) bool {
	text := e.String()
	return strings.Contains(text, strconv.Quote(TokenFilter)) || strings.Contains(text, strconv.Quote(ClientFilter))
}
