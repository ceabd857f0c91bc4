package definitions

import (
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/plinth-io/plinth/server/dialout"
	"github.com/plinth-io/plinth/server/kind/custom"
)

// newConverters makes the converters between versions. Conversion webhooks are called by dial
// at their URL, or where services finds their Service.
func newConverters(services webhook.ServiceResolver, dial dialout.Func) (*custom.Converters, error) {
	if services == nil {
		services = webhook.NewDefaultServiceResolver()
	}
	return custom.NewConverters(services, dial)
}
