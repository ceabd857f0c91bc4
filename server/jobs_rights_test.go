package server

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/apitest"
)

// TestControllersRights lets each controller that works in an ordinary cluster do its work, and wants
// none to be refused anything: their rights are those of upstream's bootstrap roles.
func TestControllersRights(t *testing.T) {
	c, log := audited(t)
	c.Controllers = []string{"*"}
	s := start(t, c)
	client, ctx := apitest.Typed(t, s), t.Context()
	work := newWork(t, client)
	apitest.Eventually(t, "the account and the root certificate", func() bool {
		_, err1 := client.CoreV1().ServiceAccounts("work").Get(ctx, "default", metav1.GetOptions{})
		_, err2 := client.CoreV1().ConfigMaps("work").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err1 == nil && err2 == nil
	})
	apitest.Eventually(t, "the token", func() bool {
		secret, err := client.CoreV1().Secrets("work").Get(ctx, "token", metav1.GetOptions{})
		return err == nil && len(secret.Data["token"]) > 0
	})
	apitest.Eventually(t, "the quota", func() bool {
		quota, err := client.CoreV1().ResourceQuotas("work").Get(ctx, "quota", metav1.GetOptions{})
		return err == nil && len(quota.Status.Hard) > 0
	})
	apitest.Eventually(t, "the aggregated role", func() bool {
		sum, err := client.RbacV1().ClusterRoles().Get(ctx, "work-sum", metav1.GetOptions{})
		return err == nil && len(sum.Rules) == 1
	})
	must(t, client.CoreV1().ConfigMaps("work").Delete(ctx, work.owner.Name, metav1.DeleteOptions{}))
	apitest.Eventually(t, "the dependent is gone", func() bool {
		_, err := client.CoreV1().ConfigMaps("work").Get(ctx, "dependent", metav1.GetOptions{})
		return err != nil
	})
	must(t, client.CoreV1().PersistentVolumeClaims("work").Delete(ctx, "claim", metav1.DeleteOptions{}))
	apitest.Eventually(t, "the claim is gone", func() bool {
		_, err := client.CoreV1().PersistentVolumeClaims("work").Get(ctx, "claim", metav1.GetOptions{})
		return err != nil
	})
	must(t, client.CoreV1().Namespaces().Delete(ctx, "work", metav1.DeleteOptions{}))
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := client.CoreV1().Namespaces().Get(ctx, "work", metav1.GetOptions{})
		return err != nil
	})
	must(t, s.Close())
	users := map[string]bool{}
	for _, events := range readEvents(t, log) {
		for _, event := range events {
			who, _ := event["user"].(map[string]any)["username"].(string)
			if !strings.HasPrefix(who, "system:serviceaccount:kube-system:") && who != "system:kube-controller-manager" {
				continue
			}
			users[who] = true
			if status, _ := event["responseStatus"].(map[string]any); status != nil && status["code"] == float64(403) && !strings.Contains(status["message"].(string), "being terminated") {
				t.Errorf("%s is refused: %v", who, status["message"])
			}
		}
	}
	if len(users) < 7 {
		t.Errorf("only %v did something", users)
	}
}

// work is what the controllers have to do with.
type work struct{ owner *corev1.ConfigMap }

func newWork(t *testing.T, client kubernetes.Interface) *work {
	t.Helper()
	ctx, w := t.Context(), &work{}
	create := func(err error) { t.Helper(); must(t, err) }
	core := client.CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}, metav1.CreateOptions{})
	create(err)
	w.owner, err = core.ConfigMaps("work").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	create(err)
	_, err = core.ConfigMaps("work").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "dependent", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: w.owner.UID}},
	}}, metav1.CreateOptions{})
	create(err)
	_, err = core.ServiceAccounts("work").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	create(err)
	_, err = core.Secrets("work").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	create(err)
	_, err = core.ResourceQuotas("work").Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("9")}},
	}, metav1.CreateOptions{})
	create(err)
	_, err = core.PersistentVolumeClaims("work").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	create(err)
	createAggregated(ctx, t, client)
	return w
}

func createAggregated(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	label := map[string]string{"work": "sum"}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "work-part", Labels: label},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "work-sum"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}},
	}, metav1.CreateOptions{})
	must(t, err)
}
