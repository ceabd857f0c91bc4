package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/controlplane/controller/legacytokentracking"
)

// ensureTokenTracking maintains the ConfigMap with the date since which plinth labels secrets whose tokens
// are used. kube-controller-manager deletes unused secrets a year after that date, and none if the ConfigMap
// is missing. A valid date stays as it is.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/2799-reduction-of-secret-based-service-account-token
func (c *clients) ensureTokenTracking(ctx context.Context) error {
	maps := c.core.ConfigMaps(metav1.NamespaceSystem)
	m, err := maps.Get(ctx, legacytokentracking.ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: legacytokentracking.ConfigMapName}, Data: trackedSince(time.Now())}
		_, err = maps.Create(ctx, m, metav1.CreateOptions{})
	} else if err == nil && !tracked(m) {
		m.Data = trackedSince(time.Now())
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return nil // another server has written it, or the next round does
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
