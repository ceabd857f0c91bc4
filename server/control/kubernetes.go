package control

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The Service through which pods reach the API, as kube-apiserver makes it: the first
// address of its default service range, and the port that HTTPS has.
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const (
	serviceName = "kubernetes"
	serviceIP   = "10.96.0.1"
	servicePort = 443
	portName    = "https"
)

func (c *clients) ensureService(ctx context.Context, port int) error {
	services := c.core.Services(metav1.NamespaceDefault)
	_, err := services.Get(ctx, serviceName, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		_, err = services.Create(ctx, kubernetesService(port), metav1.CreateOptions{})
	}
	return orExists("service "+serviceName, err)
}

func kubernetesService(port int) *corev1.Service {
	single := corev1.IPFamilyPolicySingleStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:      serviceName,
			Namespace: metav1.NamespaceDefault,
			Labels:    map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:       serviceIP,
			IPFamilyPolicy:  &single,
			SessionAffinity: corev1.ServiceAffinityNone,
			Type:            corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: servicePort, TargetPort: intstr.FromInt(port),
			}},
		},
	}
}
