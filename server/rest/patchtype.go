package rest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/response"
)

// patchType reads the type of the patch from the Content-Type, without parameters such as
// charset.
func (q *request) patchType() (types.PatchType, error) {
	media, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";")
	if supported := q.patchTypes(); !slices.Contains(supported, media) {
		return "", response.UnsupportedMediaType(supported)
	}
	return types.PatchType(media), nil
}

// patchTypes lists the types of patch that the resource or its subresource takes.
func (q *request) patchTypes() (list []string) {
	for _, t := range q.kind.PatchTypes {
		if t != types.ApplyYAMLPatchType || q.fieldManager() != nil {
			list = append(list, string(t))
		}
	}
	if q.api.o.CBOR && q.fieldManager() != nil {
		list = append(list, string(types.ApplyCBORPatchType))
	}
	return list
}
