package bars

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// Enforced declares the flag that says whether a missed bar is an error.
func Enforced(fs *flag.FlagSet) *bool {
	enforced := true
	fs.Var((*enforcement)(&enforced), "bars", "enforce: fail if a bar is missed; report: only print it")
	return &enforced
}

// enforcement is the value of that flag.
type enforcement bool

func (e *enforcement) String() string {
	if e != nil && *e {
		return "enforce"
	}
	return "report"
}

func (e *enforcement) Set(text string) error {
	switch text {
	case "enforce", "report":
		*e = text == "enforce"
		return nil
	}
	return fmt.Errorf("%q is neither enforce nor report", text)
}

// Chosen are the names in a list with commas between; all if it is empty.
func Chosen(list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	some := strings.Split(list, ",")
	for _, name := range some {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%q is none of %s", name, strings.Join(all, ", "))
		}
	}
	return some, nil
}
