package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	admissionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/admission_control/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// admissionControl turns requests away by how many have succeeded. Which have is Envoy's default: all answers below 500, and
// calls of gRPC whose status is the client's matter.
func admissionControl(t *ir.Traffic) (message, error) {
	a := t.AdmissionControl
	if a == nil || *a == (ir.AdmissionControl{}) {
		return nil, nil //nolint:nilnil // nothing is turned away
	}
	return &admissionv3.AdmissionControl{
		EvaluationCriteria:      &admissionv3.AdmissionControl_SuccessCriteria_{SuccessCriteria: &admissionv3.AdmissionControl_SuccessCriteria{}},
		SamplingWindow:          duration(a.Window),
		SrThreshold:             &corev3.RuntimePercent{DefaultValue: &typev3.Percent{Value: float64(a.SuccessRate)}, RuntimeKey: unsetKey},
		RpsThreshold:            &corev3.RuntimeUInt32{DefaultValue: a.MinRate, RuntimeKey: unsetKey},
		MaxRejectionProbability: &corev3.RuntimePercent{DefaultValue: &typev3.Percent{Value: float64(a.MaxRejected)}, RuntimeKey: unsetKey},
	}, nil
}

// unsetKey is of no runtime setting: Envoy wants the name of one.
const unsetKey = "gatehouse.unset"
