package admit

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	apiserver "k8s.io/apiserver/pkg/apis/apiserver/install"
)

// ReadConfig reads the configuration of plugins from a file, an AdmissionConfiguration of
// apiserver.config.k8s.io/v1; no file, no configuration.
// https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/#apiserver-config-k8s-io-v1-AdmissionConfiguration
func ReadConfig(file string) (admission.ConfigProvider, error) {
	if file == "" {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	apiserver.Install(scheme)
	return admission.ReadAdmissionConfiguration(Names(), file, scheme)
}
