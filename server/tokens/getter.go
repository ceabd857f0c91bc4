package tokens

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"sigs.k8s.io/json"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// getter reads the objects that a token depends on from the store's memory. It is called
// inside the gate.
type getter struct{ gate *gate }

var _ serviceaccount.ServiceAccountTokenGetter = getter{}

func (g getter) GetServiceAccount(namespace, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	return account, g.read("serviceaccounts", namespace+"/"+name, account)
}

func (g getter) GetSecret(namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, g.read("secrets", namespace+"/"+name, secret)
}

// GetPod returns the metadata alone: nothing else is looked at.
func (g getter) GetPod(namespace, name string) (*corev1.Pod, error) {
	pod := &metav1.PartialObjectMetadata{}
	err := g.read("pods", namespace+"/"+name, pod)
	return &corev1.Pod{ObjectMeta: pod.ObjectMeta}, err
}

// GetNode returns the metadata alone.
func (g getter) GetNode(name string) (*corev1.Node, error) {
	node := &metav1.PartialObjectMetadata{}
	err := g.read("nodes", name, node)
	return &corev1.Node{ObjectMeta: node.ObjectMeta}, err
}

func (g getter) read(resource, name string, into any) error {
	g.gate.look = g.gate.sync // a newer object of this name may be in the database
	e := g.gate.store.Get(object.Prefix("", resource) + name)
	if e == nil {
		return apierrors.NewNotFound(corev1.Resource(resource), name)
	}
	return json.UnmarshalCaseSensitivePreserveInts(e.Value, into)
}
