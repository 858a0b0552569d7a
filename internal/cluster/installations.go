package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
)

// silentAfter is how old the claim of a controllerName may be before nobody seems to renew it.
// Its holder does so every few seconds, but the clock of whoever asks may be wrong.
const silentAfter = 5 * time.Minute

// controllerLabels are those of the chart's Deployments.
var controllerLabels = map[string]string{"app.kubernetes.io/name": "gatehouse", "app.kubernetes.io/component": "controller"}

// installations says what is wrong with those who should serve the objects of a controllerName:
// nobody does, or an installation stands back for another one. What may not be read is not
// known, and nothing is said of it.
func installations(ctx context.Context, r *kube.Reader, controllerName string, now time.Time) (problems []source.Problem) {
	name := object.Name{Namespace: configuration.ClaimNamespace, Name: configuration.ClaimName(controllerName)}
	lease, err := r.Lease(ctx, name)
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if err != nil || holder == "" {
		return nil
	}
	if at := lease.Spec.RenewTime; at != nil && now.Sub(at.Time) > silentAfter {
		problems = append(problems, source.Problem{
			Key: object.Key{Kind: object.KindOf("coordination.k8s.io", "Lease"), Name: name}, Reason: source.NotServed,
			Message: fmt.Sprintf("no controller of controllerName %s has renewed it since %s: what statuses say may be out of date; see that the installation of Lease %s runs",
				controllerName, at.UTC().Format(time.RFC3339), holder),
		})
	}
	deployments, err := r.Deployments(ctx, controllerLabels)
	if err != nil {
		return problems
	}
	for i := range deployments {
		of := object.Name{Namespace: deployments[i].Namespace, Name: deployments[i].Name}
		config, err := r.ConfigMap(ctx, of)
		if err != nil {
			continue
		}
		// Other versions may have other fields.
		var c configuration.Configuration
		if err := yaml.Unmarshal([]byte(config.Data["config.yaml"]), &c); err != nil || c.ControllerName != controllerName {
			continue
		}
		self := configuration.ClaimHolder(of.Namespace, cmp.Or(c.LeaderElection.Name, configuration.Default().LeaderElection.Name))
		if self == holder || c.LeaderElection.Disabled {
			continue
		}
		problems = append(problems, source.Problem{
			Key: object.Key{Kind: object.KindOf("apps", "Deployment"), Name: of}, Reason: source.NotServed,
			Message: fmt.Sprintf("it stands back and writes nothing, since another installation, whose Lease is %s, has controllerName %s; give one of the two another controllerName and GatewayClass, or uninstall it",
				holder, controllerName),
		})
	}
	return problems
}
