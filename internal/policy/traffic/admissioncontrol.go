package traffic

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// maxAdmissionWindow bounds how long a failure counts.
const maxAdmissionWindow = 10 * time.Minute

func (r *reader) admissionControl(in *v1alpha1.AdmissionControl, out *ir.Traffic) {
	out.AdmissionControl = &ir.AdmissionControl{}
	if in.Disabled {
		if *in != (v1alpha1.AdmissionControl{Disabled: true}) {
			r.Problem(".disabled", "is true, and turns nothing away; leave out either it or what stands beside it")
		}
		return
	}
	*out.AdmissionControl = ir.AdmissionControl{
		SuccessRate: r.number(".successRate", in.SuccessRate, 95, 1, 100),
		Window:      r.after(".window", in.Window, 30*time.Second, time.Second),
		MinRate:     r.number(".minRequestRate", in.MinRequestRate, 5, 0, 1_000_000),
		MaxRejected: r.number(".maxRejectedPercent", in.MaxRejectedPercent, 80, 1, 100),
	}
	if w := out.AdmissionControl.Window; w > maxAdmissionWindow || w%time.Second != 0 {
		r.Problem(".window", "is %q; write whole seconds, from 1s to 10m", *in.Window)
	}
}
