package apiserver

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// AwaitRights waits until the roles and bindings that were written before are in force. The
// server's authorizer follows them by watches, and is behind on a busy machine: so a user
// of its own is given rights after all others, which the authorizer sees last.
func AwaitRights(t testing.TB, config *rest.Config) {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const namespace, group = metav1.NamespaceDefault, "last.example.com"
	meta := metav1.ObjectMeta{GenerateName: "last-", Namespace: namespace}
	rule := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get"}}}
	}
	options := metav1.CreateOptions{}
	clusterRole, err := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "last-"}, Rules: rule("everywhere")}, options)
	if err != nil {
		t.Fatal(err)
	}
	user := clusterRole.Name
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	clusterBinding, err := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	role, err := c.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rule("here")}, options)
	if err != nil {
		t.Fatal(err)
	}
	binding, err := c.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []authorizationv1.ResourceAttributes{
		{Group: group, Resource: "everywhere", Verb: "get"},
		{Group: group, Resource: "here", Verb: "get", Namespace: namespace},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what}}
		for {
			answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, options)
			if err != nil {
				t.Fatal("rights don't come into force: ", err)
			}
			if answer.Status.Allowed {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, err := range []error{
		c.RbacV1().ClusterRoleBindings().Delete(ctx, clusterBinding.Name, metav1.DeleteOptions{}),
		c.RbacV1().ClusterRoles().Delete(ctx, clusterRole.Name, metav1.DeleteOptions{}),
		c.RbacV1().RoleBindings(namespace).Delete(ctx, binding.Name, metav1.DeleteOptions{}),
		c.RbacV1().Roles(namespace).Delete(ctx, role.Name, metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
