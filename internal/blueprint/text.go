package blueprint

import (
	"errors"
	"fmt"
	"strings"
	gotemplate "text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
)

// These bound what a Go template makes, and what it takes: how often a loop's body or a
// template runs, and how many elements its functions make, all together.
const (
	maxText  = 256 << 10
	maxSteps = 100_000
)

var errTooLong = fmt.Errorf("the template makes more than %d kB", maxText>>10)

// text is what a Go template makes of some data. A key that isn't there is an error.
func text(source string, data any) (string, error) {
	left := maxSteps
	spend := func(n int) error {
		if left -= max(n, 1); left < 0 || n < 0 {
			return errors.New("the template takes too many steps")
		}
		return nil
	}
	funcs := gotemplate.FuncMap(sprig.HermeticTxtFuncMap())
	for _, name := range impure {
		delete(funcs, name)
	}
	funcs["toYaml"] = toYAML
	funcs["tick"] = func() (string, error) { return "", spend(1) }
	boundSizes(funcs, spend)
	t, err := gotemplate.New("text").Option("missingkey=error").Funcs(funcs).Parse(source)
	if err != nil {
		return "", shortTemplateError(err)
	}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			count(each.Root)
		}
	}
	var out limited
	if err := t.Execute(&out, data); err != nil {
		return "", shortTemplateError(err)
	}
	return out.String(), nil
}

// impure are functions that sprig calls hermetic and that are none, or that make large things
// of small ones in a way that can't be counted.
var impure = []string{
	"now", "date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone", "ago", "toDate", "mustToDate", "unixEpoch",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES", "randInt", "randBytes", "shuffle", "uuidv4",
	"env", "expandenv", "getHostByName", "osBase", "osClean", "osDir", "osExt", "osIsAbs", "fail",
}

// boundSizes counts what functions make that take the size of their result as a number.
func boundSizes(funcs gotemplate.FuncMap, spend func(int) error) {
	repeat, indent, nindent := funcs["repeat"].(func(int, string) string), funcs["indent"].(func(int, string) string), funcs["nindent"].(func(int, string) string)
	funcs["repeat"] = func(n int, s string) (string, error) {
		if err := spend(n * max(len(s), 1)); err != nil {
			return "", err
		}
		return repeat(n, s), nil
	}
	for name, of := range map[string]func(int, string) string{"indent": indent, "nindent": nindent} {
		funcs[name] = func(n int, s string) (string, error) {
			if err := spend(n * (1 + strings.Count(s, "\n"))); err != nil {
				return "", err
			}
			return of(n, s), nil
		}
	}
	until, step := funcs["until"].(func(int) []int), funcs["untilStep"].(func(int, int, int) []int)
	funcs["until"] = func(n int) ([]int, error) {
		if err := spend(max(n, -n)); err != nil {
			return nil, err
		}
		return until(n), nil
	}
	funcs["untilStep"] = func(from, to, by int) ([]int, error) {
		if err := spend(max(to-from, from-to)); err != nil {
			return nil, err
		}
		return step(from, to, by), nil
	}
	delete(funcs, "seq") // until and untilStep do the same, as lists
}

// count puts a tick at the beginning of each loop's body and of each template, so that what
// runs without end ends.
func count(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			count(n.List)
			count(n.ElseList)
		case *parse.IfNode:
			count(n.List)
			count(n.ElseList)
		case *parse.WithNode:
			count(n.List)
			count(n.ElseList)
		}
	}
	list.Nodes = append([]parse.Node{tick()}, list.Nodes...)
}

// tick is {{tick}}, which prints nothing.
func tick() parse.Node {
	trees := gotemplate.Must(gotemplate.New("tick").Funcs(gotemplate.FuncMap{"tick": func() string { return "" }}).Parse("{{tick}}"))
	return trees.Root.Nodes[0]
}

// limited takes as many bytes as a text may have.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, errTooLong
	}
	return l.Builder.Write(p)
}

// shortTemplateError is without what the library repeats of the template.
func shortTemplateError(err error) error {
	text := strings.TrimPrefix(err.Error(), "template: ")
	if exec := (gotemplate.ExecError{}); errors.As(err, &exec) {
		text = strings.TrimPrefix(exec.Err.Error(), "template: ")
	}
	const most = 300
	if len(text) > most {
		text = text[:most] + " …"
	}
	return errors.New("text: " + text)
}
