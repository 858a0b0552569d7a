package apiserver

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Install creates what is in a manifest, whose rights are in force when it returns.
func Install(t testing.TB, config *rest.Config, file string) {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rights := false
	for documents := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		o := &unstructured.Unstructured{}
		err := documents.Decode(o)
		if errors.Is(err, io.EOF) {
			break
		}
		rights = rights || o.GroupVersionKind().Group == rbacv1.GroupName
		if err == nil {
			err = c.Create(context.Background(), o)
		}
		if err != nil {
			t.Fatalf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
		}
	}
	if rights {
		AwaitRights(t, config)
	}
}
