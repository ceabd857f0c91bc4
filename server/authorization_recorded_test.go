package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/recordedtest"
	"github.com/plinth-io/plinth/server/tokens"
)

// TestAuthorizationRecorded plays conversations that were recorded with kube-apiserver about roles,
// escalation, reviews and nodes. kube-apiserver's authorizers are behind its storage by some
// milliseconds, so that there the exchanges named "wait" were repeated until a right was there or
// gone; here each is asked once.
func TestAuthorizationRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/authorization/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	play := func(t *testing.T, client *http.Client, url string) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				for _, e := range recordedtest.Read(t, file) {
					playAuthorized(t, e, client, url)
				}
			})
		}
	}
	const tokenFile = "testdata/authorization/tokens.csv"
	if u := recordedtest.StartUpstream(t, tokenFile, "--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=ServiceAccount"); u != nil {
		play(t, u.Anonymous, u.URL)
		return
	}
	c := Config{
		Tokens: tokens.Options{TokenFile: tokenFile},
		// No controller makes the default accounts.
		DisableAdmissionPlugins: []string{"ServiceAccount"},
	}
	aloneAndShared(t, c, func(t *testing.T, s, _ *Server) {
		play(t, apitest.Anonymous(t, s), s.URL())
	})
}

// playAuthorized plays an exchange. The rules of a rules review come in any order; those of the
// recording are sorted.
func playAuthorized(t *testing.T, e *recordedtest.Exchange, client *http.Client, url string) {
	if !strings.HasSuffix(e.Path, "/selfsubjectrulesreviews") {
		e.Play(t, client, url)
		return
	}
	a := e.Ask(t, client, url)
	var review map[string]any
	must(t, json.Unmarshal(a.Body, &review))
	status, _ := review["status"].(map[string]any)
	for _, rules := range status {
		if list, ok := rules.([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	e.Check(t, a, review)
}
