package blueprint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// These bound one expression: the characters that it has, and CEL's own measure of what it
// takes to evaluate it.
const (
	maxExpression = 4096
	maxCost       = 1_000_000
)

// expression is a compiled expression, with the names that it reads.
type expression struct {
	source  string
	program cel.Program
	reads   []string // sorted: names of the context and ids of resources
	// values are the values that it reads by name, as the names that lead to them.
	values [][]string
}

// environment is what expressions of a blueprint with some names may say.
func environment(names []string) (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(64),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Encoders(), ext.Lists(), ext.Bindings(), ext.TwoVarComprehensions(),
		library.URLs(), library.Regex(), library.Lists(), library.Quantity(), library.IP(), library.CIDR(),
	}
	for _, name := range names {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	return cel.NewEnv(append(options, functions()...)...)
}

// compile reads an expression.
func compile(env *cel.Env, source string) (*expression, error) {
	if len(source) > maxExpression {
		return nil, fmt.Errorf("the expression has %d characters; it may have %d", len(source), maxExpression)
	}
	checked, issues := env.Compile(source)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("column %d: %s", first.Location.Column()+1, plainMessage(first.Message, env))
	}
	program, err := env.Program(checked,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(maxCost), cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		return nil, err
	}
	return &expression{source, program, namesRead(checked), valuesRead(checked)}, nil
}

// plainMessage is what CEL says, with the names that there are where one is unknown.
func plainMessage(message string, env *cel.Env) string {
	message = strings.ReplaceAll(message, " (in container '')", "")
	if !strings.HasPrefix(message, "undeclared reference to") {
		return message
	}
	var names []string
	for _, v := range env.Variables() {
		if !strings.Contains(v.Name(), ".") && v.Type() == cel.DynType {
			names = append(names, v.Name())
		}
	}
	slices.Sort(names)
	return message + "; there are " + strings.Join(slices.Compact(names), ", ")
}

// namesRead are the variables of the blueprint that an expression reads. Those that it declares
// itself, in a macro, are none.
func namesRead(checked *cel.Ast) []string {
	var out []string
	for _, r := range checked.NativeRep().ReferenceMap() {
		if r.Name != "" && len(r.OverloadIDs) == 0 && r.Value == nil && !strings.HasPrefix(r.Name, "@") {
			out = append(out, r.Name)
		}
	}
	local := map[string]bool{}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			local[c.IterVar()], local[c.IterVar2()], local[c.AccuVar()] = true, true, true
		}
	}))
	out = slices.DeleteFunc(out, func(name string) bool { return local[name] })
	slices.Sort(out)
	return slices.Compact(out)
}

// valuesRead are the names that lead to the values that an expression reads.
func valuesRead(checked *cel.Ast) (out [][]string) {
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if way, ok := wayOf(e); ok && len(way) > 0 {
			out = append(out, way)
		}
	}))
	return out
}

// wayOf returns the names that lead from values to what an expression selects.
func wayOf(e ast.Expr) (way []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return nil, e.AsIdent() == nameValues
	case ast.SelectKind:
		way, ok = wayOf(e.AsSelect().Operand())
		return append(way, e.AsSelect().FieldName()), ok
	case ast.CallKind:
		call := e.AsCall()
		if name := call.FunctionName(); name != operators.OptSelect && name != operators.Index && name != operators.OptIndex {
			return nil, false
		}
		at := call.Args()[1]
		if at.Kind() != ast.LiteralKind {
			return nil, false
		}
		name, isText := at.AsLiteral().(types.String)
		way, ok = wayOf(call.Args()[0])
		return append(way, string(name)), ok && isText
	default:
		return nil, false
	}
}

// errMissing says that a key or a field isn't there.
var errMissing = errors.New("is not there")

// evaluate returns an expression's value as JSON has it. Where a key is missing the error is
// errMissing; absent says that the value is an optional without one.
func (x *expression) evaluate(variables map[string]any) (value any, absent bool, err error) {
	out, _, err := x.program.Eval(variables)
	if err != nil {
		text := err.Error()
		if key, found := strings.CutPrefix(text, "no such key: "); found {
			return nil, false, fmt.Errorf("${%s}: %s %w", x.source, key, errMissing)
		}
		return nil, false, fmt.Errorf("${%s}: %s", x.source, text)
	}
	if o, ok := out.(*types.Optional); ok {
		if !o.HasValue() {
			return nil, true, nil
		}
		out = o.GetValue()
	}
	value, err = native(out, 0)
	if err != nil {
		return nil, false, fmt.Errorf("${%s}: %w", x.source, err)
	}
	return value, false, nil
}
