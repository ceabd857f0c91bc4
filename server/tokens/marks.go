package tokens

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// marks writes on secrets when their token was used. Its client is made for the first one:
// there hardly ever is one.
type marks struct {
	gate   *gate
	config *rest.Config

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

// secretMarks is one namespace's. The embedded interface is nil: upstream calls Patch alone.
type secretMarks struct {
	typedcore.SecretInterface
	marks     *marks
	namespace string
}

// Patch is called inside the gate, and done after it. A mark that fails is made at the next
// use of the token, as upstream.
func (s *secretMarks) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Secret, error) {
	g := s.marks.gate
	g.after = append(g.after, func() {
		_, _ = s.marks.secrets(s.namespace).Patch(ctx, name, kind, data, options, subresources...)
	})
	return nil, nil
}
