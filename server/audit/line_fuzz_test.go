package audit

import (
	"bytes"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
)

// FuzzLine writes what clients choose of an event: it is one line, with upstream's bytes.
func FuzzLine(f *testing.F) {
	f.Add("/api/v1/pods?a=b&c=<d>", "kubectl/v1.33", "ann", "reason", `RBAC: allowed by "a"`, int32(200))
	f.Add("/\n{\"kind\":\"Event\"}", "\x00\xff\u2028", "", "", "\\", int32(0))
	f.Fuzz(func(t *testing.T, uri, agent, name, key, note string, code int32) {
		e := &auditinternal.Event{
			Level: auditinternal.LevelMetadata, AuditID: types.UID(key), Stage: auditinternal.StageResponseComplete,
			RequestURI: uri, UserAgent: agent, Verb: name, SourceIPs: []string{agent},
			User:           authenticationv1.UserInfo{Username: name, Groups: []string{key}, Extra: map[string]authenticationv1.ExtraValue{key: {note}}},
			ObjectRef:      &auditinternal.ObjectReference{Name: name, Namespace: key, ResourceVersion: note},
			ResponseStatus: &metav1.Status{Code: code, Message: note}, Annotations: map[string]string{key: note, name: agent},
		}
		checkLine(t, e)
		if b, _ := line(nil, e); bytes.IndexByte(b, '\n') != len(b)-1 {
			t.Errorf("not one line: %q", b)
		}
	})
}
