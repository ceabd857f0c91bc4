package response

import (
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MaxBody is how many bytes a request's body may have, as in kube-apiserver.
const MaxBody = 3 << 20

// ReadBody reads a request's body of at most limit bytes. A body that was read before is not copied.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	if b, ok := r.Body.(interface{ Whole() ([]byte, bool) }); ok && r.ContentLength <= limit {
		if body, ok := b.Whole(); ok {
			if int64(len(body)) > limit {
				return nil, tooLargeBody(limit)
			}
			return body, nil
		}
	}
	if n := r.ContentLength; n > limit {
		// Read as far as upstream does, so that the connection stays usable in the same cases.
		_, _ = io.CopyN(io.Discard, r.Body, limit+1)
		return nil, tooLargeBody(limit)
	} else if n > 0 {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, BodyError(err)
	} else if n == 0 {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, tooLargeBody(limit)
	}
	return body, BodyError(err)
}

// BodyError is the answer to a body that could not be read; nil for nil.
func BodyError(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest("reading the request's body: " + err.Error())
}

func tooLargeBody(limit int64) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
}
