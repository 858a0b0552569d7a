package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/pkg/consts"
	"sigs.k8s.io/yaml"
)

// CRDs reads the CustomResourceDefinitions of a channel of the Gateway API, in the
// version that go.mod requires, that of InferencePools, and Gatehouse's own.
func CRDs(t testing.TB, channel string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	// A test runs in its package's directory, which is in the module.
	dirs, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/gatehouse-dev/gatehouse", "sigs.k8s.io/gateway-api",
		"sigs.k8s.io/gateway-api-inference-extension").Output()
	modules := strings.Fields(string(dirs))
	if err != nil || len(modules) != 3 {
		t.Fatalf("where the Gateway API's definitions are: %q: %v", dirs, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range []string{
		filepath.Join(modules[1], "config", "crd", channel, "gateway.networking.*.yaml"),
		filepath.Join(modules[2], "config", "crd", "bases", "inference.networking.k8s.io_*.yaml"),
		filepath.Join(modules[0], "config", "crd", "*.yaml"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(text, crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if crd.Kind == "CustomResourceDefinition" { // beside them lie admission policies
				crds = append(crds, crd)
			}
		}
	}
	return crds
}

// InstallCRDs creates or replaces definitions and waits until their kinds are served.
func InstallCRDs(t testing.TB, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	c := crdClient(t, config)
	for _, crd := range crds {
		crd := crd.DeepCopy()
		err := c.Create(ctx, crd)
		if apierrors.IsAlreadyExists(err) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err = c.Get(ctx, client.ObjectKeyFromObject(crd), live); err == nil {
				crd.ResourceVersion = live.ResourceVersion
				err = c.Update(ctx, crd)
			}
		}
		if err != nil {
			t.Fatalf("CustomResourceDefinition %s: %v", crd.Name, err)
		}
	}
	awaitCRDs(t, config, crds)
}

// awaitCRDs waits until the kinds of definitions are served.
func awaitCRDs(t testing.TB, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	c := crdClient(t, config)
	for _, crd := range crds {
		for !served(t, ctx, c, crd) {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// seed stores definitions in etcd as an API server would that has accepted them. A
// server that finds them when it starts describes all kinds once, instead of once
// more for each: that takes half of the time.
func seed(ctx context.Context, s *store, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		crd := crd.DeepCopy()
		crd.UID, crd.CreationTimestamp, crd.Generation = uuid.NewUUID(), metav1.Now(), 1
		crd.Status.AcceptedNames = crd.Spec.Names
		for _, c := range []struct {
			condition       apiextensionsv1.CustomResourceDefinitionConditionType
			reason, message string
		}{
			{apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found"},
			{apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted"},
		} {
			crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: c.condition, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: c.reason, Message: c.message,
			})
		}
		for _, v := range crd.Spec.Versions {
			if v.Storage {
				crd.Status.StoredVersions = []string{v.Name}
			}
		}
		value, err := json.Marshal(crd)
		if err == nil {
			err = s.put(ctx, entry{Key: []byte(definitionKeys + crd.Name), Value: value})
		}
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
	}
	return nil
}

// RemoveCRDs deletes definitions, and with them all objects of their kinds, and
// waits until they are gone.
func RemoveCRDs(t testing.TB, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	c := crdClient(t, config)
	for _, crd := range crds {
		if err := c.Delete(ctx, crd.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Fatalf("CustomResourceDefinition %s: %v", crd.Name, err)
		}
		for !apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{})) {
			if ctx.Err() != nil {
				t.Fatalf("CustomResourceDefinition %s does not go", crd.Name)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// SetBundleVersion makes the definition of Gateways say that it is of a version.
func SetBundleVersion(t testing.TB, config *rest.Config, version string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gateways.gateway.networking.k8s.io"}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, consts.BundleVersionAnnotation, version)
	if err := crdClient(t, config).Patch(context.Background(), crd, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func served(t testing.TB, ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) bool {
	t.Helper()
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		t.Fatalf("CustomResourceDefinition %s: %v", crd.Name, err)
	}
	if !slices.ContainsFunc(live.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return false
	}
	// The server's handlers learn of it a moment later.
	for _, version := range live.Spec.Versions {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: live.Spec.Group, Version: version.Name, Kind: live.Spec.Names.ListKind})
		if version.Served && c.List(ctx, list, client.Limit(1)) != nil {
			return false
		}
	}
	return true
}

func crdClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
