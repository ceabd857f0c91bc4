package tokens

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"
)

// marks notes on secrets when their token was used. Its client is made at the first use: most
// servers never need it.
type marks struct {
	config *clientrest.Config

	once   sync.Once
	client typedcore.CoreV1Interface
}

// Secrets implements typedcore.SecretsGetter.
func (m *marks) Secrets(namespace string) typedcore.SecretInterface {
	return &secretMarks{marks: m, namespace: namespace}
}

func (m *marks) secrets(namespace string) typedcore.SecretInterface {
	m.once.Do(func() { m.client = typedcore.NewForConfigOrDie(m.config) })
	return m.client.Secrets(namespace)
}

// secretMarks are the marks of one namespace. The embedded interface is nil: upstream calls
// only Patch.
type secretMarks struct {
	typedcore.SecretInterface
	marks     *marks
	namespace string
}

// Patch is called inside the gate and takes effect after it. As in upstream a mark that fails
// is made at the next use of the token.
func (s *secretMarks) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Secret, error) {
	t := tryOf(ctx)
	t.after = append(t.after, func() {
		_, _ = s.marks.secrets(s.namespace).Patch(ctx, name, kind, data, options, subresources...)
	})
	return nil, nil
}
