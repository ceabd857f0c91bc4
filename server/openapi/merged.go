package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/response"
)

// MergedIndex serves the index of OpenAPI v3 of own, with the further documents of more, which returns their
// URLs by their names. If there are none, own answers the request itself.
func MergedIndex(own http.Handler, more func() map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		documents := more()
		if len(documents) == 0 {
			own.ServeHTTP(w, r)
			return
		}
		index, err := mergedIndex(own, r, documents)
		if err != nil {
			response.WriteError(w, r, err)
			return
		}
		serveIndex(w, r, index)
	})
}

// mergedIndex requests the index of own with GET and without the request's headers, because the index is the
// same for all clients and must be complete.
func mergedIndex(own http.Handler, r *http.Request, more map[string]string) ([]byte, error) {
	r = r.Clone(r.Context())
	r.Method, r.Header = http.MethodGet, http.Header{}
	w := responsewriter.NewInMemoryResponseWriter()
	own.ServeHTTP(w, r)
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(w.Data(), &index); err != nil {
		return nil, fmt.Errorf("read index of OpenAPI: %w", err)
	}
	for name, url := range more {
		index.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: url}
	}
	return json.Marshal(index)
}
