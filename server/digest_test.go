package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// TestDigest asks two servers for the digest of what they have in memory, and compares it with that of
// their database, at the revision of each answer.
func TestDigest(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		one, other := startBoth(t, d, Config{})
		for _, s := range []*Server{one, other} {
			client := apitest.Admin(t, s)
			status, _, body := apitest.Do(t, client, "GET", s.URL()+digestPath, "")
			var answer digestAnswer
			if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || answer.Objects < 50 || len(answer.Digest) != 32 {
				t.Fatalf("%d %s, %v", status, body, err)
			}
			apitest.Eventually(t, "memory and database are at one revision", func() bool {
				var stored sqlstore.Digest
				must(t, s.store.Source().Freeze(t.Context(), func(z changelog.Frozen) (err error) {
					stored, err = object.Digest(t.Context(), z, nil)
					return err
				}))
				_, _, body := apitest.Do(t, client, "GET", s.URL()+digestPath, "")
				var answer digestAnswer
				must(t, json.Unmarshal([]byte(body), &answer))
				if answer.Revision != strconv.FormatInt(stored.Revision, 10) {
					return false // something was written in between
				}
				if answer.Digest != stored.Text() || answer.Objects != stored.Objects {
					t.Errorf("memory has %+v, the database %+v", answer, stored)
				}
				return true
			})
			if status, _, body := apitest.Do(t, client, "POST", s.URL()+digestPath, "{}"); status != http.StatusMethodNotAllowed {
				t.Errorf("POST: %d %s", status, body)
			}
		}
	})
}
