package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// Both halves of the bench must measure the same objects.
func TestCopiesAreWhatManifestsSay(t *testing.T) {
	v, err := schema.New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	template, err := decodeEntry(v, entry{index: 1, port: 3000})
	if err != nil {
		t.Fatal(err)
	}
	other := entry{index: 20_001, version: 7, port: 3001}
	want, err := decodeEntry(v, other)
	if err != nil {
		t.Fatal(err)
	}
	got := template.as(other)
	if diff := cmp.Diff(want.all(), got.all()); diff != "" {
		t.Errorf("the copy differs from the manifest (-manifest +copy):\n%s", diff)
	}
}
