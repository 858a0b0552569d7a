package migrate

import (
	"fmt"
	"strings"
)

// verdictWords are the verdicts in the words of the reference.
var verdictWords = map[Verdict]string{
	Converted: "converted", NotNeeded: "not needed", Differs: "differs", NotPossible: "not possible",
}

// Reference is the page with all annotations.
func Reference() string {
	var b strings.Builder
	b.WriteString(`<!-- made by: go generate ./internal/migrate -->
# Annotations of ingress-nginx

What [` + "`gatehouse migrate`" + `](../guide/ingress-nginx.md) makes of each annotation of ingress-nginx 1.15, without its prefix
` + "`nginx.ingress.kubernetes.io/`" + `. Those with **!** let less through: where one of them can't be converted nothing is printed, unless
` + "`--allow-opened`" + ` asks for it. A value that can't be converted is told with the reason, whatever the table says.

| annotation | | becomes, or what to do |
|---|---|---|
`)
	counts := map[Verdict]int{}
	for i := range table {
		a := &table[i]
		counts[a.verdict]++
		name, verdict := "`"+a.name+"`", verdictWords[a.verdict]
		if a.protects {
			name += " **!**"
		}
		text := a.text
		if a.of != "" {
			text += fmt.Sprintf(" (with `%s`)", a.of)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, verdict, text)
	}
	fmt.Fprintf(&b, "\nOf %d annotations %d are converted, %d are not needed, %d differ, and %d are not possible.\n", len(table),
		counts[Converted], counts[NotNeeded], counts[Differs], counts[NotPossible])
	b.WriteString(`
## The controller's ConfigMap

Its entries are told in the same way, as of the whole Gateway. An entry that isn't here lets less through for all that is known.

| entries | | become, or what to do |
|---|---|---|
`)
	for i := range entries {
		e := &entries[i]
		names, mark := "`"+strings.ReplaceAll(e.names, " ", "`, `")+"`", ""
		if e.protects {
			mark = " **!**"
		}
		fmt.Fprintf(&b, "| %s%s | %s | %s |\n", names, mark, verdictWords[e.verdict], e.text)
	}
	return b.String()
}
