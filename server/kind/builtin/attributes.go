package builtin

import (
	"strings"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// attributes are those of selectable fields, see kind.Kind.Attributes. TestAttributes compares them with
// what Attrs says of random objects.
type attributes = map[string]string

// absentIs is the attribute of a field at a path. Objects without the field have the value absent.
func absentIs(absent, path string) string { return object.FieldOr(absent, strings.Split(path, ".")...) }

// defaulted is the attribute of a field that decoding fills in.
func defaulted(path string) string { return object.Field(strings.Split(path, ".")...) }

var podAttributes = attributes{
	"spec.nodeName":            absentIs("", "spec.nodeName"),
	"spec.restartPolicy":       defaulted("spec.restartPolicy"),
	"spec.schedulerName":       defaulted("spec.schedulerName"),
	"spec.serviceAccountName":  defaulted("spec.serviceAccountName"),
	"spec.hostNetwork":         absentIs("false", "spec.hostNetwork"),
	"status.phase":             absentIs("", "status.phase"),
	"status.nominatedNodeName": absentIs("", "status.nominatedNodeName"),
	"status.podIP":             defaulted("status.podIP"),
}

// eventAttributes lacks the field source, which is in one of two places.
var eventAttributes = attributes{
	"involvedObject.kind":            absentIs("", "involvedObject.kind"),
	"involvedObject.namespace":       absentIs("", "involvedObject.namespace"),
	"involvedObject.name":            absentIs("", "involvedObject.name"),
	"involvedObject.uid":             absentIs("", "involvedObject.uid"),
	"involvedObject.apiVersion":      absentIs("", "involvedObject.apiVersion"),
	"involvedObject.resourceVersion": absentIs("", "involvedObject.resourceVersion"),
	"involvedObject.fieldPath":       absentIs("", "involvedObject.fieldPath"),
	"reason":                         absentIs("", "reason"),
	"reportingComponent":             absentIs("", "reportingComponent"),
	"type":                           absentIs("", "type"),
}
