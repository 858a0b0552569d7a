//go:build ignore

// Command gen writes docs/reference/features.md.
package main

import (
	"fmt"
	"os"

	"github.com/gatehouse-dev/gatehouse/internal/features"
)

func main() {
	if err := os.WriteFile("../../docs/reference/features.md", []byte(features.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
