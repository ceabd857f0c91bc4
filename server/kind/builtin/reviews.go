package builtin

import (
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// review completes the Kind of a review. A review is a question: it is created, answered and
// never stored.
func review(k kind.Kind, answer apirest.Creater) *kind.Kind {
	k.Verbs = []string{"create"}
	k.Virtual = answer
	return &k
}
