package tokens

import "k8s.io/kubernetes/pkg/serviceaccount"

// Document is an answer of the issuer, who can be asked about itself.
type Document struct {
	JSON   []byte
	MaxAge int // seconds for which anybody may keep it
}

// Documents says what the issuer answers to those who verify its tokens on their own: its
// configuration, and the keys. address, HOST:PORT, is where this server is. The error is
// for an issuer that cannot be asked, since it is no https URL.
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
//
// They are made at each call: keys come and go with servers.
func (t *Tokens) Documents(address string) (config, keys Document, err error) {
	provider, err := serviceaccount.NewOpenIDMetadataProvider(t.o.Issuers[0], t.o.JWKSURI, address, t.keys)
	if err != nil {
		return config, keys, err
	}
	config.JSON, config.MaxAge = provider.GetConfigJSON()
	keys.JSON, keys.MaxAge = provider.GetKeysetJSON()
	return config, keys, nil
}
