package expression

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/parser"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
)

// MaxLength is how many characters an expression may have.
const MaxLength = 1024

// Error says what is wrong with an expression, and where. Lines and columns begin at 1.
type Error struct {
	Line, Column int
	Message      string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Condition reads an expression that is true or false, and returns it in Envoy's terms. The
// result may not be written to.
func Condition(text string) (*exprpb.Expr, error) {
	return known.get(text, func() (*exprpb.Expr, error) { return condition(text) })
}

func condition(text string) (*exprpb.Expr, error) {
	if n := len([]rune(text)); n > MaxLength {
		return nil, &Error{1, MaxLength + 1, fmt.Sprintf("there are %d characters; an expression has at most %d", n, MaxLength)}
	}
	environment, err := requests()
	if err != nil {
		return nil, err
	}
	checked, issues := environment.Compile(text)
	if all := issues.Errors(); len(all) > 0 {
		first := all[0]
		at := &Error{first.Location.Line(), max(first.Location.Column(), 0) + 1, plain(first.Message)}
		at.unknownField(text)
		return nil, at
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, &Error{1, 1, fmt.Sprintf("the expression is of type %s; it must be true or false, such as by a comparison", got)}
	}
	parsed, err := cel.AstToParsedExpr(checked)
	if err != nil {
		return nil, err
	}
	t := translation{}
	out := t.expr(parsed.Expr, 0)
	if t.wrong != "" {
		at := checked.NativeRep().SourceInfo().GetStartLocation(t.at)
		return nil, &Error{at.Line(), at.Column() + 1, t.wrong}
	}
	return out, nil
}

// plain is a message of the type checker's, with what there is where a name is unknown.
func plain(message string) string {
	message = strings.ReplaceAll(message, " (in container '')", "")
	if strings.HasPrefix(message, "undeclared reference to") {
		message += "; there are " + strings.Join(variableNames(), ", ") + " and the functions contains, endsWith, matches, size and startsWith"
	}
	return message
}

// dotted is what begins an expression with something in one of the objects that variables are in.
var dotted = regexp.MustCompile(`^(request|auth)\s*\.\s*([A-Za-z0-9_]+)`)

// unknownField has an error about a variable that there isn't point to the word that is misspelt, and say
// what there is beside it. The type checker knows no request: to it the variables have dots in their names.
func (e *Error) unknownField(text string) {
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(e.Message, "undeclared reference to '") || e.Line < 1 || e.Line > len(lines) {
		return
	}
	line := []rune(lines[e.Line-1])
	rest := string(line[min(e.Column-1, len(line)):])
	found := dotted.FindStringSubmatchIndex(rest)
	if found == nil {
		return
	}
	object, word := rest[found[2]:found[3]], rest[found[4]:found[5]]
	var names []string
	for _, v := range variables {
		if name, ok := strings.CutPrefix(v.name, object+"."); ok {
			names = append(names, name)
		}
	}
	if slices.Contains(names, word) {
		return
	}
	slices.Sort(names)
	e.Column += found[4]
	e.Message = fmt.Sprintf("%s.%s: there is no %s in %s; there are %s", object, word, word, object, strings.Join(names, ", "))
}

// functions are those that expressions may use: all of them are Envoy's too, and none of them
// makes longer texts or lists.
var functions = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, operators.Index, operators.Negate,
	overloads.Contains, overloads.EndsWith, overloads.Matches, overloads.Size, overloads.StartsWith,
}

// requests is what expressions about requests may say.
var requests = sync.OnceValues(func() (*cel.Env, error) {
	subset := &env.LibrarySubset{DisableMacros: true}
	for _, f := range functions {
		subset.IncludeFunctions = append(subset.IncludeFunctions, env.NewFunction(f))
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)), cel.Macros(hasMacro),
		cel.ParserRecursionLimit(4 * maxDepth), cel.ParserExpressionSizeLimit(MaxLength),
	}
	for _, v := range variables {
		options = append(options, cel.Variable(v.name, v.of))
		if v.found != nil {
			options = append(options, cel.Variable(hasVariable(v.name), cel.BoolType))
		}
	}
	return cel.NewCustomEnv(options...)
})

// hasMacro is CEL's has(), and also says whether there is a token or a client: to CEL those are no
// fields of something, but variables.
var hasMacro = cel.GlobalMacro(operators.Has, 1, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	if of := args[0]; of.Kind() == ast.SelectKind && of.AsSelect().Operand().Kind() == ast.IdentKind {
		name := of.AsSelect().Operand().AsIdent() + "." + of.AsSelect().FieldName()
		if slices.ContainsFunc(variables, func(v variable) bool { return v.name == name && v.found != nil }) {
			return f.NewIdent(hasVariable(name)), nil
		}
	}
	return parser.MakeHas(f, target, args)
})

// hasVariable is the variable that says whether there is another one. Nobody can write its name.
func hasVariable(name string) string { return "has(" + name + ")" }

// known are the expressions that have been read lately: every host with a rule asks again.
var known = cache{}

// cache keeps results in two generations. When the young one is full it becomes the old one,
// whose entries are lost unless somebody asks for them.
type cache struct {
	mu         sync.Mutex
	young, old map[string]result
}

type result struct {
	expr *exprpb.Expr
	err  error
}

// generation is how many expressions one of the two has.
const generation = 1024

func (c *cache) get(text string, read func() (*exprpb.Expr, error)) (*exprpb.Expr, error) {
	c.mu.Lock()
	r, ok := c.young[text]
	if !ok {
		r, ok = c.old[text]
	}
	c.mu.Unlock()
	if !ok {
		r.expr, r.err = read()
	}
	if e := (*Error)(nil); r.err != nil && !errors.As(r.err, &e) {
		return nil, r.err // not of the expression's making
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= generation {
		c.young, c.old = map[string]result{}, c.young
	}
	c.young[text] = r
	return r.expr, r.err
}
