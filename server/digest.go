package server

import (
	"net/http"
	"strconv"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/response"
)

// digestPath is where a server says what it has in memory, to be compared with what plinth verify says
// of the database.
const digestPath = "/plinth/digest"

// digestAnswer has the revision as text, as resourceVersion is in the API.
type digestAnswer struct {
	Revision   string `json:"revision"`
	Objects    int64  `json:"objects"`
	Digest     string `json:"digest"`
	Unreadable int64  `json:"unreadable,omitempty"`
}

func (d *database) serveDigest(x *guard.Call) error {
	if x.Request().Method != http.MethodGet {
		return response.MethodNotAllowed()
	}
	digest, err := d.store.Digest(x.Request().Context())
	if err != nil {
		return err
	}
	answer := digestAnswer{Revision: strconv.FormatInt(digest.Revision, 10), Objects: digest.Objects, Digest: digest.Text(), Unreadable: digest.Unreadable}
	responsewriters.WriteRawJSON(http.StatusOK, answer, x.Response())
	return nil
}
