package control

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiserver/pkg/util/webhook"
)

// newConverters makes the converters between versions. Conversion webhooks are called at
// their URL, or where services finds their Service.
func newConverters(services webhook.ServiceResolver) (*conversion.CRConverterFactory, error) {
	if services == nil {
		services = webhook.NewDefaultServiceResolver()
	}
	converters, err := conversion.NewCRConverterFactory(services, nil)
	if err != nil {
		return nil, fmt.Errorf("converters of custom resources: %w", err)
	}
	return converters, nil
}
