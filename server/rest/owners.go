package rest

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/response"
)

// What a client is warned of, before and after admission has changed the object. %v is a list
// of UIDs.
const (
	duplicateOwners         = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
	duplicateOwnersAdmitted = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
)

// dedupOwners drops owner references that occur twice, and warns of them.
func dedupOwners(m metav1.Object, warn *response.Warnings, format string) {
	refs := m.GetOwnerReferences()
	if len(refs) < 2 {
		return
	}
	var kept []metav1.OwnerReference
	var twice []string
	for _, ref := range refs {
		if hasOwner(kept, ref) {
			twice = append(twice, string(ref.UID))
			continue
		}
		kept = append(kept, ref)
	}
	if len(twice) == 0 {
		return
	}
	warn.AddWarning("", fmt.Sprintf(format, strings.Join(twice, ", ")))
	m.SetOwnerReferences(kept)
}

func hasOwner(refs []metav1.OwnerReference, ref metav1.OwnerReference) bool {
	for _, r := range refs {
		if r.UID == ref.UID && apiequality.Semantic.DeepEqual(r, ref) {
			return true
		}
	}
	return false
}
