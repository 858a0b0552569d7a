package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Type  string          `json:"type"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int    `json:"id"`
		Title   string `json:"title"`
		Targets []struct {
			Expr   string `json:"expr"`
			Legend string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

// documented are the labels of each metric in docs/reference/admin.md.
func documented(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/reference/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`gatehouse_[^|]*)\\|([^|]*)\\|").FindAllSubmatch(text, -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(string(row[1]), -1) {
			out[name] = map[string]bool{"instance": true, "le": true}
			for _, label := range regexp.MustCompile(`\w+`).FindAllString(string(row[2]), -1) {
				out[name][label] = true
			}
			if strings.HasPrefix(name, "gatehouse_proxy_") || strings.HasPrefix(name, "gatehouse_limits_") {
				out[name]["gateway"] = true // as the page says of all of them
			}
		}
	}
	return out
}

// exported reports whether the program has the name of a metric.
func exported(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// others are metrics of Envoy, of Go's runtime and of Prometheus itself.
var others = regexp.MustCompile(`^(envoy|go|process)_`)

// What Grafana puts in place of its variables.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$gateway", ".*", "$namespace", ".*", "$route", ".*")

// TestQueries protects panels that stay empty: each query is one of Prometheus's language, and asks for metrics and
// labels that there are.
func TestQueries(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(root + "/charts/gatehouse/dashboards/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	metrics, program := documented(t), exported(t)
	p := parser.NewParser(parser.Options{})
	uids := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID != "gatehouse-"+strings.TrimSuffix(filepath.Base(file), ".json") || uids[d.UID] || len(d.Panels) == 0 {
			t.Errorf("%s has the uid %s and %d panels", file, d.UID, len(d.Panels))
		}
		uids[d.UID] = true
		check := func(of, query, legend string) {
			expr, err := p.ParseExpr(variables.Replace(query))
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", file, of, err, query)
				return
			}
			known := map[string]bool{}
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok || others.MatchString(selector.Name) {
					return nil
				}
				name := selector.Name
				if metrics[name] == nil {
					name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				}
				if metrics[name] == nil || !strings.Contains(program, `"`+name+`"`) {
					t.Errorf("%s, %s: there is no %s", file, of, selector.Name)
					return nil
				}
				for label := range metrics[name] {
					known[label] = true
				}
				for _, m := range selector.LabelMatchers {
					if m.Name != "__name__" && !metrics[name][m.Name] {
						t.Errorf("%s, %s: %s has no label %s", file, of, name, m.Name)
					}
				}
				return nil
			})
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if by, ok := node.(*parser.AggregateExpr); ok {
					for _, label := range by.Grouping {
						if len(known) > 0 && !known[label] && label != "gateway" {
							t.Errorf("%s, %s: sums by %s, which nothing there has", file, of, label)
						}
					}
				}
				return nil
			})
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1) {
				if !strings.Contains(query, label[1]) {
					t.Errorf("%s, %s: the legend has %s, and the query hasn't", file, of, label[1])
				}
			}
		}
		for _, panel := range d.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s, %s asks for nothing", file, panel.Title)
			}
			for _, target := range panel.Targets {
				check(panel.Title, target.Expr, target.Legend)
			}
		}
		for _, v := range d.Templating.List {
			var query struct{ Query string }
			if v.Type != "query" {
				continue
			}
			if err := json.Unmarshal(v.Query, &query); err != nil {
				t.Errorf("%s, variable %s: %v", file, v.Name, err)
				continue
			}
			of := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query.Query)
			if of == nil {
				t.Errorf("%s, variable %s asks for %s", file, v.Name, query.Query)
				continue
			}
			check("variable "+v.Name, "sum by ("+of[2]+") ("+of[1]+")", "")
		}
	}
}
