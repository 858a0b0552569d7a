package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	target := "./cmd/gatehouse"
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	if err := run(os.Stdout, "..", target); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// module is one that the binary is made of.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

func run(w io.Writer, dir, target string) error {
	modules, err := modulesOf(dir, target)
	if err != nil {
		return err
	}
	var failed []error
	for _, m := range modules {
		name, err := licenceOf(m.Dir)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
			continue
		}
		fmt.Fprintf(w, "%-14s %s %s\n", name, m.Path, m.Version)
	}
	return errors.Join(failed...)
}

// modulesOf returns the modules of all packages that a package needs.
func modulesOf(dir, target string) ([]module, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module", target) //nolint:gosec // of this repository
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]module{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue // the standard library, ours
		}
		if p.Module.Replace != nil {
			p.Module = p.Module.Replace
		}
		all[p.Module.Path] = *p.Module
	}
	var out []module
	for _, m := range all {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// licences are those that may be compiled in, by sentences that all of their texts have.
// The first that fits counts.
var licences = []struct {
	name      string
	sentences []string
}{
	{"Apache-2.0", []string{"apache license version 2.0, january 2004", "grant of patent license"}},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0", "covered software"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may not be used to endorse or promote"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "redistributions in binary form must reproduce"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice"}},
	{"CC0-1.0", []string{"cc0 1.0 universal", "affirmer"}},
}

// refused are sentences of licences that ask for our source, wherever they stand.
var refused = []string{"gnu general public license", "gnu affero general public license", "gnu lesser general public license", "server side public license", "business source license"}

// licenceOf finds the licence of the module in a directory.
func licenceOf(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("it is not in Go's cache: go mod download")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		base := strings.ToUpper(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		if e.IsDir() || !strings.HasPrefix(base, "LICEN") && !strings.HasPrefix(base, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		name, err := classify(string(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", e.Name(), err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", errors.New("there is no file with a licence")
	}
	return strings.Join(names, ","), nil
}

// classify tells which licence a text is.
func classify(text string) (string, error) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, l := range licences {
		missing := func(sentence string) bool { return !strings.Contains(text, sentence) }
		if slices.ContainsFunc(l.sentences, missing) {
			continue
		}
		// The Mozilla licence names others as those that it may be combined with.
		if i := slices.IndexFunc(refused, func(s string) bool { return strings.Contains(text, s) }); i >= 0 && l.name != "MPL-2.0" {
			return "", fmt.Errorf("it speaks of the %s", refused[i])
		}
		return l.name, nil
	}
	return "", errors.New("it is not one of the known licences: read it, and add it to tools/licences or do without the module")
}
