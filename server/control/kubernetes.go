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
	return orExists("service "+serviceName, c.createService(ctx, at, want))
}

const (
	// halfMade is how long a Service may be in the making by another server.
	halfMade = 5 * time.Second
	lookHalf = 50 * time.Millisecond
)

// createService creates the Service, and waits where its address is taken in its own name:
// another server is about to create it, or has died over it.
func (c *clients) createService(ctx context.Context, at Address, want *corev1.Service) error {
	services, addresses := c.core.Services(metav1.NamespaceDefault), c.networking.IPAddresses()
	for begun := time.Now(); ; {
		_, refused := services.Create(ctx, want, metav1.CreateOptions{})
		if !errors.IsInvalid(refused) {
			return refused
		}
		address, err := addresses.Get(ctx, want.Spec.ClusterIP, metav1.GetOptions{})
		switch {
		case errors.IsNotFound(err) && time.Since(begun) < halfMade: // given back meanwhile
			if err := pauseFor(ctx, lookHalf); err != nil {
				return err
			}
			continue
		case err != nil || address.Spec.ParentRef == nil || *address.Spec.ParentRef != kubernetesRef:
			// Somebody has it. That can be seen, and is no reason not to serve.
			return c.report(ctx, kubernetesObject, "KubernetesServiceNotCreated", refused.Error())
		}
		if _, err := services.Get(ctx, serviceName, metav1.GetOptions{}); !errors.IsNotFound(err) {
			return err
		}
		if !at.Shared || time.Since(begun) >= halfMade {
			left := metav1.NewPreconditionDeleteOptions(string(address.UID))
			if err := addresses.Delete(ctx, address.Name, *left); err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
				return err
			}
			begun = time.Now()
		} else if err := pauseFor(ctx, lookHalf); err != nil {
			return err
		}
	}
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
