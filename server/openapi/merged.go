package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/response"
)

// MergedIndex serves the index of OpenAPI v3 that own has, with further documents in it: more
// returns their URLs by their names. Without any, own answers itself.
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

// mergedIndex asks own for its index with GET and without headers, whatever the request has:
// the index is the same for all, and it must come whole.
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
