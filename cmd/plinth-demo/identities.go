package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The users that the components are. The roles of all but kwok are Kubernetes' own.
const (
	managerUser   = "system:kube-controller-manager"
	schedulerUser = "system:kube-scheduler"
	kwokUser      = "kwok"
)

// kubeconfig has plinth make a user's certificate, and returns the path of a kubeconfig with it.
func (d *demo) kubeconfig(data, component, user string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(d.plinth, "kubeconfig", "--data-dir="+data, "--user="+user)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make a kubeconfig for %s: %w: %s", component, err, bytes.TrimSpace(stderr.Bytes()))
	}
	path := filepath.Join(d.dir, component+".kubeconfig")
	return path, os.WriteFile(path, text, 0o600)
}

// kwokRules are what kwok does to simulated nodes and their pods.
var kwokRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"nodes/status", "pods/status"}, Verbs: []string{"update", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "update", "patch", "delete"}},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"}},
}

// allowKwok creates kwok's role, unless it is there from an earlier run.
func allowKwok(ctx context.Context, client kubernetes.Interface) error {
	meta := metav1.ObjectMeta{Name: kwokUser}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: kwokRules}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kwokUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kwokUser}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
