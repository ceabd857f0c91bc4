package response

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestReadBody reads bodies up to the limit and refuses longer ones, whether or not their length
// is known.
func TestReadBody(t *testing.T) {
	const limit = 8
	for _, body := range []string{"", "x", "12345678", "123456789", strings.Repeat("x", 1000)} {
		for _, known := range []bool{true, false} {
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			if !known {
				r.ContentLength = -1
			}
			got, err := ReadBody(r, limit)
			if len(body) > limit {
				if !apierrors.IsRequestEntityTooLargeError(err) {
					t.Errorf("%d bytes, length known %t: got error %v", len(body), known, err)
				}
			} else if err != nil || string(got) != body {
				t.Errorf("%d bytes, length known %t: got %q, %v", len(body), known, got, err)
			}
		}
	}
}

// TestReadBodyCutShort refuses a body that ends before its length.
func TestReadBodyCutShort(t *testing.T) {
	r := httptest.NewRequest("POST", "/", io.NopCloser(strings.NewReader("123")))
	r.ContentLength = 5
	if _, err := ReadBody(r, 8); !apierrors.IsBadRequest(err) {
		t.Errorf("got error %v", err)
	}
}
