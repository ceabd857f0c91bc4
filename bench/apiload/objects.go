package apiload

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parts is how many values the label of objects has, by which one percent of them are selected.
const Parts = 100

// ConfigMap is an object as a client sends it, with 1 KiB of data in which the numbers n and sent can be
// replaced without changing the length. Its label part says which part of all objects it is of.
func ConfigMap(name string, n, part int) []byte {
	data := fmt.Sprintf(`"data":{"n":"%012d","sent":"%020d","pad":"`, n, 0)
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"labels":{"app":"bench","part":"p%02d"}},%s%s"}}`,
		name, part%Parts, data, strings.Repeat("x", 1024-len(data)))
}

// PartSelector selects the objects of one part.
func PartSelector(part int) string { return fmt.Sprintf("labelSelector=part%%3Dp%02d", part%Parts) }

// Stamp writes into an object when it is sent, and returns it.
func Stamp(object []byte) []byte {
	SetField(object, "sent", fmt.Sprintf("%020d", time.Now().UnixNano()))
	return object
}

// SetField overwrites the bytes after "name":" in object with value, which has the same length.
func SetField(object []byte, name, value string) {
	if i := bytes.Index(object, []byte(`"`+name+`":"`)); i >= 0 {
		copy(object[i+len(name)+4:], value)
	}
}

// TextField returns the text that follows "name":" in object; empty if there is none. It has no escaped
// quotes.
func TextField(object []byte, name string) string {
	mark := []byte(`"` + name + `":"`)
	i := bytes.Index(object, mark)
	if i < 0 {
		return ""
	}
	text := object[i+len(mark):]
	return string(text[:max(bytes.IndexByte(text, '"'), 0)])
}

// IntField returns the number whose digits follow "name":" in object; 0 if there are none.
func IntField(object []byte, name string) int64 {
	n, _ := strconv.ParseInt(TextField(object, name), 10, 64)
	return n
}

// podContainers are those of all pods.
const podContainers = `"containers":[{"name":"main","image":"registry.example.com/team/image-01:v1.2.3","resources":{"requests":{"cpu":"10m","memory":"16Mi"}}}]`

// Deployment is one whose pods are scheduled.
func Deployment(name string, replicas int) []byte {
	return fmt.Appendf(nil, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":%q},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"bench"}},`+
		`"template":{"metadata":{"labels":{"app":"bench"}},"spec":{%s}}}}`, name, replicas, podContainers)
}

// Pod is one that wants to run on a node, or is to be scheduled if node is empty.
func Pod(name, node string) []byte {
	on := ""
	if node != "" {
		on = fmt.Sprintf(`"nodeName":%q,`, node)
	}
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"labels":{"app":"bench"}},`+
		`"spec":{%s%s}}`, name, on, podContainers)
}

// PodStatus is a patch of a pod's status.
func PodStatus(phase, ready, now string) []byte {
	return fmt.Appendf(nil, `{"status":{"phase":%q,"podIP":"10.2.0.1","podIPs":[{"ip":"10.2.0.1"}],"startTime":%q,`+
		`"conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":%[3]q},{"type":"ContainersReady","status":%[3]q},{"type":"PodScheduled","status":"True"}],`+
		`"containerStatuses":[{"name":"main","image":"registry.example.com/team/image-01:v1.2.3","imageID":"","ready":false,"restartCount":0,"state":{"running":{"startedAt":%[2]q}}}]}}`, phase, now, ready)
}
