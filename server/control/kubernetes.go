package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"
)

// The Service through which pods reach the API, as kube-apiserver makes it: the first
// address of its service range, and the port that HTTPS has.
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const (
	serviceName = "kubernetes"
	servicePort = 443
	portName    = "https"
)

func (c *clients) ensureService(ctx context.Context, at Address) error {
	services := c.core.Services(metav1.NamespaceDefault)
	_, err := services.Get(ctx, serviceName, metav1.GetOptions{})
	if !errors.IsNotFound(err) {
		return orExists("service "+serviceName, err)
	}
	want, err := kubernetesService(at)
	if err != nil {
		return err
	}
	_, err = services.Create(ctx, want, metav1.CreateOptions{})
	if errors.IsInvalid(err) {
		err = c.createAgain(ctx, at, want, err)
	}
	return orExists("service "+serviceName, err)
}

// halfMade is how long a Service may be in the making by another server.
const halfMade = 5 * time.Second

// createAgain is for an address that is taken. A server that died while it made the Service
// has left it; else somebody has it, which can be seen and is no reason not to serve.
func (c *clients) createAgain(ctx context.Context, at Address, want *corev1.Service, refused error) error {
	address, err := c.networking.IPAddresses().Get(ctx, want.Spec.ClusterIP, metav1.GetOptions{})
	if err != nil || address.Spec.ParentRef == nil || *address.Spec.ParentRef != kubernetesRef {
		return c.report(ctx, kubernetesObject, "KubernetesServiceNotCreated", refused.Error())
	}
	if age := time.Since(address.CreationTimestamp.Time); at.Shared && age < halfMade {
		if err := pauseFor(ctx, halfMade-age); err != nil {
			return err
		}
	}
	left := metav1.NewPreconditionDeleteOptions(string(address.UID))
	if err := c.networking.IPAddresses().Delete(ctx, address.Name, *left); err != nil && !errors.IsNotFound(err) {
		return err
	}
	_, err = c.core.Services(metav1.NamespaceDefault).Create(ctx, want, metav1.CreateOptions{})
	return err
}

var (
	kubernetesObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: metav1.NamespaceDefault, Name: serviceName}
	kubernetesRef    = networkingv1.ParentReference{Resource: "services", Namespace: metav1.NamespaceDefault, Name: serviceName}
)

func kubernetesService(at Address) (*corev1.Service, error) {
	ip, err := netutils.GetIndexedIP(at.Ranges[0], 1)
	if err != nil {
		return nil, err
	}
	single := corev1.IPFamilyPolicySingleStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:      serviceName,
			Namespace: metav1.NamespaceDefault,
			Labels:    map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP:       ip.String(),
			IPFamilyPolicy:  &single,
			SessionAffinity: corev1.ServiceAffinityNone,
			Type:            corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: servicePort, TargetPort: intstr.FromInt32(int32(at.Port)),
			}},
		},
	}, nil
}
