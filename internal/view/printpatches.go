package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// printedPatch is something that patches have changed.
type printedPatch struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// By are the patches that have changed it, by their fields in the parameters.
	By     []string        `json:"by"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// virtualHost is what a printedPatch of one has for its type.
const virtualHost = "virtual host"

// printedPatches are what patches have changed for a Gateway.
func printedPatches(c *flow.Ctx, p *pipeline.Pipeline, gateway object.Name) (out []printedPatch, err error) {
	p.PatchedOf(c, gateway, func(of *pipeline.Patched) {
		if len(of.By) == 0 {
			return
		}
		printed := printedPatch{Type: of.Type.String(), Name: of.Name}
		before, after := of.Before.JSON, of.After.JSON
		if of.HostBefore != nil {
			printed.Type, before, after = virtualHost, of.HostBefore.JSON, of.HostAfter.JSON
		}
		for _, i := range of.By {
			printed.By = append(printed.By, fmt.Sprintf("spec.envoy.patches[%d]", i))
		}
		var failed error
		printed.Before, failed = before()
		err = cmp.Or(err, failed)
		printed.After, failed = after()
		err = cmp.Or(err, failed)
		out = append(out, printed)
	})
	slices.SortFunc(out, func(a, b printedPatch) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), bytes.Compare(a.After, b.After))
	})
	// A host is in several tables, or in all shards of one.
	return slices.CompactFunc(out, func(a, b printedPatch) bool {
		return a.Type == b.Type && a.Name == b.Name && bytes.Equal(a.Before, b.Before) && bytes.Equal(a.After, b.After)
	}), err
}

// ofPrinted leaves those of some resources that are printed.
func ofPrinted(list []printedPatch, types map[string][]printedResource) []printedPatch {
	return slices.DeleteFunc(list, func(p printedPatch) bool {
		if p.Type != virtualHost {
			return !slices.ContainsFunc(types[p.Type], func(r printedResource) bool { return r.Name == p.Name })
		}
		domains := []byte(`"domains":[` + strconv.Quote(p.Name) + `]`)
		return !slices.ContainsFunc(types[envoy.Routes.String()], func(r printedResource) bool { return bytes.Contains(r.Resource, domains) })
	})
}
