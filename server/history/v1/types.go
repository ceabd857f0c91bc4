// Package v1 is the API group history.plinth.io/v1: what has changed, who changed it, and how objects
// were at a time in the past.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the group.
const GroupName = "history.plinth.io"

// GroupVersion is the version of the group in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// NotKept is in the warning of a list if the history does not reach as far back as the request asks.
const NotKept = "not kept"

// Change is one change of one object: a resource of the object's namespace. Its name and its
// resourceVersion are the revision, which is the resourceVersion that the object got.
type Change struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Description `json:",inline"`
}

// Version is a Change with the object after it.
type Version struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Description `json:",inline"`

	// Data is the object in its stored version; for a deleted object, its last state. It is null if it cannot
	// be decrypted; Unreadable says why.
	Data       runtime.RawExtension `json:"data"`
	Unreadable string               `json:"unreadable,omitempty"`

	// Touched are the fields that differ from the version before, if the change updated an object and that
	// version is still stored. Lists and watches include them on request. Items of lists are named by their
	// merge keys, as managedFields give them: spec.ports[port=53,protocol="UDP"].name. A list whose keys are
	// not known is one field.
	Touched []string `json:"touched,omitempty"`
	// MoreTouched is the number of further fields.
	MoreTouched int64 `json:"moreTouched,omitempty"`
}

// Description describes a change.
type Description struct {
	Revision int64            `json:"revision"`
	Time     metav1.MicroTime `json:"time"` // of the commit, to the millisecond
	Action   Action           `json:"action"`

	// The author of the change; empty for changes from before authors were recorded.
	User         string `json:"user,omitempty"`         // the user of the request
	Impersonator string `json:"impersonator,omitempty"` // who impersonated the user, if anybody
	Verb         string `json:"verb,omitempty"`
	Subresource  string `json:"subresource,omitempty"`
	Manager      string `json:"manager,omitempty"` // field manager
	AuditID      string `json:"auditID,omitempty"`

	Object ObjectReference `json:"object"`
}

// Action is what the change did to the object.
type Action string

// The actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
	Copied  Action = "copied" // by a copy or an import from another database; the user is its last author there
)

// ObjectReference names an object.
type ObjectReference struct {
	Resource  string `json:"resource"`       // deployments.apps
	Kind      string `json:"kind,omitempty"` // Deployment; empty if the resource is not served any more
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// CreateRevision is the revision that created the object. It differs between objects of the same name
	// that existed one after the other.
	CreateRevision int64 `json:"createRevision"`
}

// The fields that a field selector may name. Since, Until and At take a revision, or a time in RFC 3339
// format. They and With take no !=. A range includes both ends.
const (
	FieldResource     = "object.resource"
	FieldKind         = "object.kind"
	FieldName         = "object.name"
	FieldNamespace    = "object.namespace"
	FieldAction       = "action"
	FieldUser         = "user"
	FieldImpersonator = "impersonator"
	FieldVerb         = "verb"
	FieldSubresource  = "subresource"
	FieldManager      = "manager"
	FieldAuditID      = "auditID"
	FieldSince        = "since"
	FieldUntil        = "until"
	// FieldAt is for versions: it selects the objects as they were at one time, each once.
	FieldAt = "at"
	// FieldWith is for lists and watches of versions: with=touched adds what each change touched.
	FieldWith   = "with"
	WithTouched = "touched"
)

// ChangeList is a list of changes, newest first.
type ChangeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Change `json:"items"`
}

// VersionList is a list of versions: newest first, or with at in the order of their keys.
type VersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Version `json:"items"`
}
