package tokens

import (
	"net/http"
	"strconv"

	"k8s.io/kubernetes/pkg/serviceaccount"
)

// Document is one of the documents that an issuer publishes about itself.
type Document struct {
	MediaType string
	JSON      []byte
	MaxAge    int // seconds for which caches may keep it
}

// Documents returns the documents by which others verify tokens on their own: the issuer's
// configuration and its keys, by path. address, HOST:PORT, is this server's. As in upstream
// there are none if the issuer is no https URL.
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
//
// A document is made anew at each call: keys come and go with servers.
func (t *Tokens) Documents(address string) map[string]func() (Document, error) {
	provider := func() (serviceaccount.OpenIDMetadataProvider, error) {
		return serviceaccount.NewOpenIDMetadataProvider(t.o.Issuers[0], t.o.JWKSURI, address, t.keys)
	}
	if _, err := provider(); err != nil {
		return nil
	}
	return map[string]func() (Document, error){
		serviceaccount.OpenIDConfigPath: func() (Document, error) {
			p, err := provider()
			if err != nil {
				return Document{}, err
			}
			text, age := p.GetConfigJSON()
			return Document{"application/json", text, age}, nil
		},
		serviceaccount.JWKSPath: func() (Document, error) {
			p, err := provider()
			if err != nil {
				return Document{}, err
			}
			text, age := p.GetKeysetJSON()
			return Document{"application/jwk-set+json", text, age}, nil
		},
	}
}

// ServeHTTP answers with the document.
func (d Document) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", d.MediaType)
	h.Set("Content-Length", strconv.Itoa(len(d.JSON)))
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(d.MaxAge))
	_, _ = w.Write(d.JSON) // a client that is gone is nobody's error
}
