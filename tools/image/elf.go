package main

import (
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// binary is what an ELF file says of itself.
type binary struct {
	arch      string   // as Go and OCI name it
	libraries []string // absolute paths on this host, the loader included; none for a static binary
}

// machine is what is known of a processor: its name in OCI, and the directory
// of its libraries on Debian.
var machines = map[elf.Machine]struct{ arch, triple string }{
	elf.EM_X86_64:  {"amd64", "x86_64-linux-gnu"},
	elf.EM_AARCH64: {"arm64", "aarch64-linux-gnu"},
}

// opened are libraries that no ELF header names: glibc opens them when it first
// resolves a name. Since 2.34 they are part of libc, and may be missing.
var opened = []string{"libresolv.so.2", "libnss_dns.so.2", "libnss_files.so.2"}

// inspect follows what a binary needs, as the dynamic loader would without its
// cache: the image has none, so libraries stay in the loader's own directories.
func inspect(path string) (binary, error) {
	f, err := elf.Open(path)
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	m, ok := machines[f.Machine]
	if !ok {
		return binary{}, fmt.Errorf("%s is for %v: want x86-64 or AArch64", path, f.Machine)
	}
	b := binary{arch: m.arch}
	loader, err := interpreter(f)
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	if loader == "" {
		return b, nil
	}

	found := map[string]string{filepath.Base(loader): loader}
	wanted, err := f.ImportedLibraries()
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	for len(wanted) > 0 {
		library := wanted[0]
		wanted = wanted[1:]
		if found[library] != "" {
			continue
		}
		file, more, err := find(library, f.Machine, m.triple)
		if err != nil {
			return binary{}, fmt.Errorf("%s: %w", path, err)
		}
		found[library] = file
		wanted = append(wanted, more...)
	}
	for _, library := range opened {
		if file, _, err := find(library, f.Machine, m.triple); err == nil {
			found[library] = file
		}
	}
	b.libraries = slices.Sorted(maps.Values(found))
	return b, nil
}

// interpreter is the path of the dynamic loader; empty for a static binary.
func interpreter(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			data, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(data), "\x00"), err
		}
	}
	return "", nil
}

// find looks for a library where the loader looks, and says what it needs.
func find(library string, machine elf.Machine, triple string) (file string, needs []string, err error) {
	dirs := []string{"/lib/" + triple, "/usr/lib/" + triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
	for _, dir := range dirs {
		file := filepath.Join(dir, library)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		f, err := elf.Open(file)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", file, err)
		}
		needs, err := f.ImportedLibraries()
		same := f.Machine == machine
		_ = f.Close()
		if !same {
			continue
		}
		return file, needs, err
	}
	return "", nil, fmt.Errorf("needs %s, which is in none of %s", library, strings.Join(dirs, ", "))
}
