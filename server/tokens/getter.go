package tokens

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"sigs.k8s.io/json"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// getter reads the objects that a token depends on from the store's memory. It is called
// inside the gate.
type getter struct{ gate *gate }

var _ serviceaccount.ServiceAccountTokenGetter = getter{}

func (g getter) GetServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	return account, g.read(ctx, "", "serviceaccounts", namespace+"/"+name, account)
}

func (g getter) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, g.read(ctx, "", "secrets", namespace+"/"+name, secret)
}

// GetPod returns the metadata alone: nothing else is looked at.
func (g getter) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &metav1.PartialObjectMetadata{}
	err := g.read(ctx, "", "pods", namespace+"/"+name, pod)
	return &corev1.Pod{ObjectMeta: pod.ObjectMeta}, err
}

// GetValidatingWebhookConfiguration returns the metadata alone.
func (g getter) GetValidatingWebhookConfiguration(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	config := &metav1.PartialObjectMetadata{}
	err := g.read(ctx, admissionregistrationv1.GroupName, "validatingwebhookconfigurations", name, config)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: config.ObjectMeta}, err
}

// GetMutatingWebhookConfiguration returns the metadata alone.
func (g getter) GetMutatingWebhookConfiguration(ctx context.Context, name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	config := &metav1.PartialObjectMetadata{}
	err := g.read(ctx, admissionregistrationv1.GroupName, "mutatingwebhookconfigurations", name, config)
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: config.ObjectMeta}, err
}

// GetNode returns the metadata alone.
func (g getter) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &metav1.PartialObjectMetadata{}
	err := g.read(ctx, "", "nodes", name, node)
	return &corev1.Node{ObjectMeta: node.ObjectMeta}, err
}

func (g getter) read(ctx context.Context, group, resource, name string, into any) error {
	tryOf(ctx).look = g.gate.sync // a newer object of this name may be in the database
	e := g.gate.store.Get(object.Prefix(group, resource) + name)
	if e == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, name)
	}
	return json.UnmarshalCaseSensitivePreserveInts(e.Value, into)
}
