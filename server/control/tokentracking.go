package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking"
)

// ensureTokenTracking keeps the ConfigMap that says since when secrets are marked whose
// tokens are used: kube-controller-manager deletes unused ones a year after that day, and
// none without it. What stands there stays, if it is a day.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/2799-reduction-of-secret-based-service-account-token
func (c *clients) ensureTokenTracking(ctx context.Context) error {
	maps := c.core.ConfigMaps(metav1.NamespaceSystem)
	m, err := maps.Get(ctx, legacytokentracking.ConfigMapName, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: legacytokentracking.ConfigMapName}, Data: trackedSince(time.Now())}
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	} else if err == nil && !tracked(m) {
		m.Data = trackedSince(time.Now())
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		if errors.IsConflict(err) {
			return nil // another server has done it, or the next round does
		}
	}
	return orExists("ConfigMap "+legacytokentracking.ConfigMapName, err)
}

func tracked(m *corev1.ConfigMap) bool {
	_, err := time.Parse(time.DateOnly, m.Data[legacytokentracking.ConfigMapDataKey])
	return err == nil
}

func trackedSince(now time.Time) map[string]string {
	return map[string]string{legacytokentracking.ConfigMapDataKey: now.UTC().Format(time.DateOnly)}
}
