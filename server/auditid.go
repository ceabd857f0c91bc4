package server

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"

	"github.com/google/uuid"
)

// auditHeader is canonical, to be used as a key.
const auditHeader = "Audit-Id"

// identify gives a request the id by which its answer and the logs of both ends can be
// told together: the client's own, else a new one (upstream:
// endpoints/filters/audit_init.go).
func identify(h http.Header, r *http.Request) {
	if asked := r.Header[auditHeader]; len(asked) > 0 && asked[0] != "" {
		h[auditHeader] = asked[:1:1]
		return
	}
	h[auditHeader] = []string{newAuditID()}
}

// newAuditID is a random UUID. Nobody gains by guessing one, so that it need not cost a
// system call.
func newAuditID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // of RFC 9562
	return id.String()
}
