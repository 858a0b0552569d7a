package translate

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Inexpressible is the problem of a rule that translation let pass and that
// can't be written in Envoy's configuration.
func Inexpressible(s ir.Source, err error) Problem {
	field := fmt.Sprintf("spec.rules[%d]", s.Rule)
	return Problem{Rule: s.Rule, Name: s.Title, Field: field, Condition: condition.Inexpressible(field, err)}
}
