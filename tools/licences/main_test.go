package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What may be compiled in is told from what may not, and from what nobody has read.
func TestLicenceOf(t *testing.T) {
	const (
		mit = "MIT License\n\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy of this software\n" +
			"The above copyright notice and this permission notice shall be included"
		bsd2 = "Redistribution and use in source and binary forms, with or without\nmodification. Redistributions in binary form must reproduce the above"
		bsd3 = bsd2 + " Neither the name of X"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
		fails string
	}{
		"one":             {files: map[string]string{"LICENSE": mit, "main.go": "GNU General Public License"}, want: "MIT"},
		"British":         {files: map[string]string{"licence.md": bsd3}, want: "BSD-3-Clause"},
		"two clauses":     {files: map[string]string{"COPYING": bsd2}, want: "BSD-2-Clause"},
		"two":             {files: map[string]string{"LICENSE": bsd3, "LICENSE.mit": mit}, want: "BSD-3-Clause,MIT"},
		"none":            {files: map[string]string{"README": mit}, fails: "no file with a licence"},
		"unknown":         {files: map[string]string{"LICENSE": "Do what you like."}, fails: "LICENSE: it is not one of the known"},
		"copyleft":        {files: map[string]string{"COPYING": "GNU GENERAL PUBLIC LICENSE"}, fails: "COPYING: it is not one of the known"},
		"copyleft within": {files: map[string]string{"LICENSE": mit + "\nor the GNU Affero General Public License"}, fails: "gnu affero general public license"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := licenceOf(dir)
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q and %v, want %q and %q", name, got, err, c.want, c.fails)
		}
	}
}
