package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// controlGroup is above all control groups of a cluster's pods. Without one of
// its own, a kubelet would take the pods of another on this machine for orphans,
// and end them. Clusters have the same name where their caches differ.
func controlGroup(dir string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir))
	return fmt.Sprintf("gatehouse-%s-%08x", filepath.Base(dir), h.Sum32())
}

// hierarchies are the roots of control groups: one with version 2, one for each
// controller with version 1, both on hybrid machines.
func hierarchies() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var roots []string
	for line := range strings.Lines(string(data)) {
		mount, filesystem, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if kind, _, _ := strings.Cut(filesystem, " "); (kind == "cgroup" || kind == "cgroup2") && len(fields) > 4 {
			roots = append(roots, fields[4])
		}
	}
	return roots, nil
}

// controlGroups makes what the kubelet wants to find.
func controlGroups(dir string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, controlGroup(dir)), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// removeControlGroups takes them away, the deepest first. The kernel may need a
// moment after the last process ended.
func removeControlGroups(dir string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		top := filepath.Join(root, controlGroup(dir))
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			err := removeDirectories(top)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return err
			}
		}
	}
	return nil
}

func removeDirectories(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, dir := range slices.Backward(dirs) {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}
