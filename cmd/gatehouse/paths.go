package main

import (
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// pathFlags name the files that a command reads, beside its arguments: `-f` as kubectl has
// it.
type pathFlags struct{ named []string }

func (f *pathFlags) define(fl *pflag.FlagSet) {
	fl.StringArrayVarP(&f.named, "filename", "f", nil, "directory, file or - to read, the same as PATH; repeatable")
}

// all returns the paths in the order in which they are read.
func (f *pathFlags) all(args []string) []string { return slices.Concat(f.named, args) }

// split divides arguments into paths and, after them, what is chosen. A word that names a
// kind is a path only if there is such a file; ./gateway is always one.
func (f *pathFlags) split(args []string) (paths, chosen []string) {
	i := slices.IndexFunc(args, func(arg string) bool {
		_, err := parseSelection(arg)
		return err == nil && !exists(arg)
	})
	if i < 0 {
		i = len(args)
	}
	return f.all(args[:i]), args[i:]
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
