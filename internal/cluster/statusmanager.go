package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// maxManager is the longest name of a manager in managedFields, in bytes.
const maxManager = 128

// statusManager is the name under which a controller writes statuses. It tells
// controllers apart, and those of one name share it: after a restart it tells which
// statuses are ours where they don't say so themselves.
func statusManager(controllerName string) string {
	if controllerName == pipeline.ControllerName {
		return infra.ManagedBy
	}
	name := infra.ManagedBy + " " + controllerName
	if len(name) <= maxManager {
		return name
	}
	sum := sha256.Sum256([]byte(controllerName))
	return infra.ManagedBy + " " + hex.EncodeToString(sum[:])
}

// wroteCondition reports whether a manager wrote a condition of an object as a whole.
func wroteCondition(o metav1.Object, manager, condition string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		if e.Manager != manager || e.Subresource != "status" || e.FieldsV1 == nil {
			return false
		}
		var fields struct {
			Status struct {
				Conditions map[string]map[string]any `json:"f:conditions"`
			} `json:"f:status"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			return false
		}
		_, message := fields.Status.Conditions[`k:{"type":"`+condition+`"}`]["f:message"]
		return message
	})
}
