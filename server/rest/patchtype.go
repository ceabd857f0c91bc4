package rest

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// patchType reads what kind of patch the body is from its Content-Type; a parameter such
// as charset changes nothing.
func (q *request) patchType() (types.PatchType, error) {
	header := q.r.Header.Get("Content-Type")
	media, _, _ := strings.Cut(header, ";")
	supported := q.patchTypes()
	switch {
	case slices.Contains(supported, media):
		return types.PatchType(media), nil
	case q.kind.NoProtobuf || mentions(header, supported):
		return "", unsupportedMedia(supported)
	}
	return "", errors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		"415: Unsupported Media Type", 0, false)
}

// patchTypes that the resource takes. Custom resources have no strategic merge patch.
func (q *request) patchTypes() []string {
	list := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if !q.kind.NoProtobuf {
		list = append(list, string(types.StrategicMergePatchType))
	}
	if q.fields() != nil {
		list = append(list, string(types.ApplyYAMLPatchType))
	}
	return list
}

// mentions tells whether any of the comma-separated media types is supported. If none is,
// upstream's router of built-in resources answers instead of the handler, in other words
// (go-restful: Route.matchesContentType).
func mentions(header string, supported []string) bool {
	for media := range strings.SplitSeq(header, ",") {
		media, _, _ = strings.Cut(media, ";")
		if slices.Contains(supported, strings.TrimSpace(media)) {
			return true
		}
	}
	return false
}
