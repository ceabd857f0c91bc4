package rest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// patchType reads what kind of patch the body is from its Content-Type; a parameter such
// as charset changes nothing.
func (q *request) patchType() (types.PatchType, error) {
	media, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";")
	if supported := q.patchTypes(); !slices.Contains(supported, media) {
		return "", unsupportedMedia(supported)
	}
	return types.PatchType(media), nil
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
