package provisionermode

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

//go:embed deployment.yaml
var manifest []byte

const (
	// classLabel has the hash of the class, which may be longer than a label.
	classLabel = "gatehouse.dev/static-class"
	// gatewayAnnotation has the Gateway's name in full.
	gatewayAnnotation = "gatehouse.dev/gateway"
)

// nameOf returns the name of a Gateway's Deployment: what it begins with is for
// people, the hash keeps those of equal names, or of another class, apart.
func nameOf(gateway object.Name, class string) string {
	const most = 63 - 1 - hashLength // it is a label's value too
	name := strings.ReplaceAll(gateway.Name, ".", "-")
	if len(name) > most {
		name = strings.TrimRight(name[:most], "-")
	}
	return name + "-" + hash(class+"\n"+gateway.String())
}

const hashLength = 10

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// deployment returns what runs the process of a Gateway.
func (o *Options) deployment(gateway object.Name) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict(manifest, d); err != nil {
		return nil, fmt.Errorf("the manifest of Deployments: %w", err)
	}
	id := nameOf(gateway, o.Class)
	d.Namespace, d.Name = o.Namespace, id
	d.Labels["app"] = id
	d.Labels[classLabel] = hash(o.Class)
	d.Annotations = map[string]string{gatewayAnnotation: gateway.String()}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": id}}
	d.Spec.Template.Labels["app"] = id
	d.Spec.Template.Annotations = map[string]string{gatewayAnnotation: gateway.String()}
	container := &d.Spec.Template.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = o.Image, corev1.PullPolicy(o.PullPolicy)
	container.Args = append(container.Args,
		"--gateway-ctlr-name="+o.ControllerName,
		"--gatewayclass="+o.Class,
		"--gateway="+gateway.String(),
		"--update-gatewayclass-status=false",
		"--leader-election-lock-name="+id,
	)
	return d, nil
}
