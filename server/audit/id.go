package audit

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"

	"github.com/google/uuid"
)

// idHeader is canonical, to be used as a key.
const idHeader = "Audit-Id"

// Identify gives a request the id that links its answer with the logs of client and
// server: the id that the client sent, else a new one (upstream:
// endpoints/filters/audit_init.go). answer is the header of the answer.
func Identify(answer http.Header, r *http.Request) {
	if asked := r.Header[idHeader]; len(asked) > 0 && asked[0] != "" {
		answer[idHeader] = asked[:1:1]
		return
	}
	answer[idHeader] = []string{newID()}
}

// ID returns the id that Identify has put into the header of an answer.
func ID(answer http.Header) string {
	if id := answer[idHeader]; len(id) > 0 {
		return id[0]
	}
	return ""
}

type impersonatorKey struct{}

// WithImpersonator returns the context of a request that somebody has made as another user.
func WithImpersonator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, impersonatorKey{}, name)
}

// Impersonator returns who has made a request as another user, empty if nobody has.
func Impersonator(ctx context.Context) string {
	name, _ := ctx.Value(impersonatorKey{}).(string)
	return name
}

// newID returns a random UUID. Guessing an id gains nothing, so the random numbers need
// not cost a system call.
func newID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // of RFC 9562
	return id.String()
}
