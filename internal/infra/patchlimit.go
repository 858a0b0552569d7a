package infra

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// These bound what patches cost, whoever writes them: a JSON patch that copies an object
// into itself doubles it with each operation, and a strategic merge compares lists
// element by element, which has taken minutes for a patch of 2 KB. The patches of a
// Gateway are counted together, each time that its parameters or those of its class are
// checked. What is within the bounds takes less than a second (TestPatchesAreBounded).
const (
	// maxPatchText is what all patches say, in bytes of JSON.
	maxPatchText = 32 << 10
	// maxPatched is the size of an object before a patch and after each operation, in
	// bytes of JSON.
	maxPatched = 64 << 10
	// maxOperations are those of all JSON patches, maxCopies those that copy.
	maxOperations, maxCopies = 64, 16
	// maxMerged are the lists and the elements of lists in all strategic merge patches.
	maxMerged = 128
	// maxList is the length of a list in an object to which such a patch is applied.
	maxList = 256
	// maxPatchError is how much is told of why a patch can't be applied, in bytes. The
	// library repeats what it was given.
	maxPatchError = 512
)

// spent is what patches have taken of what they may.
type spent struct{ text, operations, copies, merged int }

// checkPatches counts what patches would do before any of it is done. The error says
// what is too much.
func checkPatches(patches []v1alpha1.Patch) error {
	var s spent
	for i, p := range patches {
		if err := s.add(p); err != nil {
			return fmt.Errorf("patches[%d]: %w", i, shortError(err))
		}
	}
	return nil
}

func (s *spent) add(p v1alpha1.Patch) error {
	if s.text += len(p.Value.Raw); s.text > maxPatchText {
		return fmt.Errorf("all patches up to this one have %d bytes, over the limit of %d; shorten them", s.text, maxPatchText)
	}
	if p.Type != v1alpha1.JSONPatch {
		var value any
		if err := json.Unmarshal(p.Value.Raw, &value); err != nil {
			return err
		}
		all, _ := lists(value)
		if s.merged += all; s.merged > maxMerged {
			return fmt.Errorf("all strategic merge patches up to this one have %d lists and elements of lists, over the limit of %d; "+
				"shorten them, or use a JSON patch", s.merged, maxMerged)
		}
		return nil
	}
	operations, err := jsonpatch.DecodePatch(p.Value.Raw)
	if err != nil {
		return err
	}
	if s.operations += len(operations); s.operations > maxOperations {
		return fmt.Errorf("all JSON patches up to this one have %d operations, over the limit of %d; remove some", s.operations, maxOperations)
	}
	for i, o := range operations {
		if path, err := o.Path(); err != nil || path == "" {
			return fmt.Errorf("operation %d must have a path, and that of a field, not of the whole object", i)
		}
		if o.Kind() == "copy" {
			s.copies++
		}
	}
	if s.copies > maxCopies {
		return fmt.Errorf("all JSON patches up to this one have %d copy operations, over the limit of %d; use add, with the value itself", s.copies, maxCopies)
	}
	return nil
}

// lists counts lists with their elements, at any depth, and returns the length of the
// longest one.
func lists(value any) (all, longest int) {
	within := func(child any) {
		n, length := lists(child)
		all, longest = all+n, max(longest, length)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			within(child)
		}
	case []any:
		all, longest = 1+len(value), len(value)
		for _, child := range value {
			within(child)
		}
	}
	return all, longest
}

// checkSize checks the JSON of an object before and after a patch.
func checkSize(text []byte) error {
	if len(text) > maxPatched {
		return fmt.Errorf("the object has %d bytes, over the limit of %d for one that is patched; "+
			"shorten what is added to it", len(text), maxPatched)
	}
	return nil
}

// checkLists checks the JSON of an object before a strategic merge.
func checkLists(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	if _, longest := lists(value); longest > maxList {
		return fmt.Errorf("the object has a list of %d elements, over the limit of %d for one to which a strategic merge patch is applied; "+
			"use a JSON patch", longest, maxList)
	}
	return nil
}

// shortError keeps what a status can take of an error.
func shortError(err error) error {
	if text := err.Error(); len(text) > maxPatchError {
		return errors.New(strings.ToValidUTF8(text[:maxPatchError], "") + "…")
	}
	return err
}
