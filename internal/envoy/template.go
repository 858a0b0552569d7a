package envoy

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// operators are what variables are to Envoy; those of a name end before it.
var operators = map[ir.Variable]string{
	ir.VariablePath:    "%PATH(NQ:ORIG_OR_PATH)%",
	ir.VariableMethod:  "%REQ(:METHOD)%",
	ir.VariableHost:    "%REQ(:AUTHORITY)%",
	ir.VariableScheme:  "%REQ(X-FORWARDED-PROTO)%",
	ir.VariableID:      "%REQ(X-REQUEST-ID)%",
	ir.VariableAddress: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
	ir.VariableHeader:  "%REQ(",
	ir.VariableQuery:   "%QUERY_PARAM(",
}

// formatOf returns a template in Envoy's terms.
func formatOf(template string) (string, error) {
	pieces, err := ir.ParseTemplate(template)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(literal(p.Text))
		b.WriteString(operators[p.Variable])
		if p.Name != "" {
			b.WriteString(p.Name + ")%")
		}
	}
	return b.String(), nil
}
