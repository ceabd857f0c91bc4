package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	netutils "k8s.io/utils/net"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// The Service through which pods reach the API. As in kube-apiserver, it has the first address of the service
// range and the port of HTTPS. https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const (
	serviceName = "kubernetes"
	servicePort = 443
	portName    = "https"
)

func (c *clients) ensureService(ctx context.Context, at Address) error {
	services := c.core.Services(metav1.NamespaceDefault)
	_, err := services.Get(ctx, serviceName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return orExists("service "+serviceName, err)
	}
	want, err := kubernetesService(at)
	if err != nil {
		return err
	}
	return orExists("service "+serviceName, c.createService(ctx, at, want))
}

const (
	// serviceGrace is how long another server may take between reserving the address and creating the
	// Service.
	serviceGrace = 5 * time.Second
	lookHalf     = 50 * time.Millisecond
)

// createService creates the Service. If the address is reserved for a Service of this name that does not
// exist, it waits: another server is about to create the Service, or has died before it did.
func (c *clients) createService(ctx context.Context, at Address, want *corev1.Service) error {
	services, addresses := c.core.Services(metav1.NamespaceDefault), c.networking.IPAddresses()
	for begun := time.Now(); ; {
		_, refused := services.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsInvalid(refused) {
			return refused
		}
		address, err := addresses.Get(ctx, want.Spec.ClusterIP, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && time.Since(begun) < serviceGrace: // the address has been released
			if err := sleep.For(ctx, lookHalf); err != nil {
				return err
			}
			continue
		case err != nil || address.Spec.ParentRef == nil || *address.Spec.ParentRef != kubernetesRef:
			// Another Service has the address. An event reports that, and the server starts nevertheless.
			return c.reportFault(ctx, kubernetesObject, "KubernetesServiceNotCreated", refused.Error())
		}
		if _, err := services.Get(ctx, serviceName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		if !at.shared() || time.Since(begun) >= serviceGrace {
			left := metav1.NewPreconditionDeleteOptions(string(address.UID))
			if err := addresses.Delete(ctx, address.Name, *left); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
			begun = time.Now()
		} else if err := sleep.For(ctx, lookHalf); err != nil {
			return err
		}
	}
}

var (
	kubernetesObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: metav1.NamespaceDefault, Name: serviceName}
	kubernetesRef    = allocate.Owner(metav1.NamespaceDefault, serviceName)
)

func kubernetesService(at Address) (*corev1.Service, error) {
	ip, err := netutils.GetIndexedIP(at.Ranges.Addresses[0], 1)
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
