package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddUser makes a user who may do, in the whole cluster, what rules allow and
// nothing else but discovery, and returns the path of a kubeconfig, readable by
// its owner only. Rights in single namespaces can be given with Apply: the user
// is of kind User and has the name given here.
func (c *Cluster) AddUser(ctx context.Context, name string, rules ...rbacv1.PolicyRule) (kubeconfig string, err error) {
	path := filepath.Join(c.dir, "users", name+".user.kubeconfig")
	if err := c.authority.certKubeconfig(path, c.ServerURL(), name, nil); err != nil {
		return "", err
	}
	if len(rules) == 0 {
		return path, nil
	}
	role := "standup-test:" + name
	objects := []runtime.Object{
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: role},
			Rules:      rules,
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		},
	}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return "", fmt.Errorf("giving %s rights: %w", name, err)
		}
		if err := c.ApplyObject(ctx, &unstructured.Unstructured{Object: content}); err != nil {
			return "", fmt.Errorf("giving %s rights: %w", name, err)
		}
	}
	return path, nil
}
