package control

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiserver/pkg/util/webhook"
)

// newConverters makes the converters between versions. Conversion webhooks are called at
// their URL, or by the name that a Service has in DNS.
func newConverters() (*conversion.CRConverterFactory, error) {
	converters, err := conversion.NewCRConverterFactory(webhook.NewDefaultServiceResolver(), nil)
	if err != nil {
		return nil, fmt.Errorf("converters of custom resources: %w", err)
	}
	return converters, nil
}
