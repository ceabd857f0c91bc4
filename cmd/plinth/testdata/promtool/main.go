// Command promtool checks rules for Prometheus, and the expressions of a dashboard, by Prometheus' own
// packages. promtool itself takes minutes to build, and checks no dashboards.
//
//	promtool RULES... < EXPRESSIONS
//
// Each line of the standard input is an expression. The names of all metrics in rules and expressions are
// printed, one on a line.
package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	names, failed := map[string]bool{}, false
	fail := func(where string, err error) {
		failed = true
		fmt.Fprintf(os.Stderr, "%s: %v\n", where, err)
	}
	check := func(where, expression string) {
		parsed, err := parser.ParseExpr(expression)
		if err != nil {
			fail(where+": "+expression, err)
			return
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				names[v.Name] = true
			}
			return nil
		})
	}
	for _, file := range os.Args[1:] {
		groups, problems := rulefmt.ParseFile(file, false)
		for _, err := range problems {
			fail(file, err)
		}
		if groups == nil {
			continue
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				check(file, r.Expr)
			}
		}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		check("expression", lines.Text())
	}
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	for _, name := range all {
		fmt.Println(name)
	}
	if failed {
		os.Exit(1)
	}
}
