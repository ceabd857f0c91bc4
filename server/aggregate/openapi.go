package aggregate

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/handler3"
)

const openAPIRoot = "/openapi/v3"

// documentName is what x's document is called in the index of OpenAPI v3.
func (x *Service) documentName() string { return strings.TrimPrefix(documentPath(x.Object), "/") }

// Document returns whose document of OpenAPI v3 a path is, nil if it is none of an
// extension server's.
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
