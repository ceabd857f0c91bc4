package aggregator

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/handler3"
)

const openAPIRoot = "/openapi/v3"

// documentName returns the name of x's document in the index of OpenAPI v3.
func (x *Service) documentName() string { return strings.TrimPrefix(documentPath(x.Object), "/") }

// Documents returns the URLs of the OpenAPI v3 documents of all extension servers, by their
// names in the index.
func (s *Services) Documents() map[string]string { return s.Discovered().Documents }

// Document returns the extension server that has the OpenAPI v3 document at path, nil if
// none has.
func (s *Services) Document(path string) *Service {
	name, ok := strings.CutPrefix(path, openAPIRoot+"/apis/")
	if !ok || s.Discovered().Documents["apis/"+name] == "" {
		return nil
	}
	group, version, _ := strings.Cut(name, "/")
	return s.Find(version + "." + group)
}

// fetchIndex asks which documents the server has. What it had before stays when it fails;
// one that says that it has no index has no documents.
func (d *discovered) fetchIndex(ctx context.Context, x *Service) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	answer, err := x.get(ctx, openAPIRoot, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return
	}
	defer answer.Body.Close()
	var index handler3.OpenAPIV3Discovery
	switch {
	case answer.StatusCode == http.StatusNotFound:
	case answer.StatusCode != http.StatusOK || decodeBody(answer, &index) != nil:
		return
	}
	documents := map[string]string{}
	for name, at := range index.Paths {
		if path, _, _ := strings.Cut(at.ServerRelativeURL, "?"); path == openAPIRoot+"/"+name {
			documents[name] = at.ServerRelativeURL
		}
	}
	d.documents = documents
}
