package past

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// TestFolded reads changes from text such as "ann@a bob/status@b": a user, and the object.
func TestFolded(t *testing.T) {
	t.Parallel()
	for changes, want := range map[string]string{
		"":                                       "",
		"ann@a":                                  "1 ann patch 1",
		"kcm/status@a":                           "1 kcm patch status 1",
		"kcm/status@a kcm/status@a":              "2 kcm 2 status updates 1",
		"kcm/status@a ann@a kcm/status@a":        "3 kcm patch status 1, 2 ann patch 1, 1 kcm patch status 1",
		"kcm/status@a kcm/status@b kcm/status@a": "3 kcm 3 status updates 2",
		"kcm/status@a let/status@b kcm/status@a let/status@b ann@a bob@a": "6 kcm 2 status updates 1, 5 let 2 status updates 1, 2 ann patch 1, 1 bob patch 1",
		"ann@a kcm/status@a kcm/status@b kcm/status@c":                    "4 ann patch 1, 3 kcm 3 status updates 3",
		"kcm/status@a kcm/status!@a kcm/status@a":                         "3 kcm patch status 1, 2 kcm patch status 1, 1 kcm patch status 1",
		"kcm/status@a kcm/status@a ERROR ann@a":                           "4 kcm 2 status updates 1, broken",
	} {
		var got []string
		for s, err := range Folded(written(changes)) {
			if err != nil {
				got = append(got, err.Error())
				break
			}
			got = append(got, fmt.Sprint(s.Revision, " ", s.User, " ", s.Way(), " ", s.Objects))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", changes, got, want)
		}
	}
	for range Limited(Folded(written("kcm/status@a ann@a kcm/status@a")), 1) { // ends early, without a panic
	}
}

func written(text string) func(func(historyv1.Change, error) bool) {
	return func(yield func(historyv1.Change, error) bool) {
		words := strings.Fields(text)
		for i, word := range words {
			var c historyv1.Change
			var err error
			if word == "ERROR" {
				err = errors.New("broken")
			}
			who, object, _ := strings.Cut(word, "@")
			c.User, c.Subresource, _ = strings.Cut(who, "/")
			c.Verb, c.Revision, c.Object.Name, c.Action = "patch", int64(len(words)-i), object, historyv1.Changed
			if strings.HasSuffix(c.Subresource, "!") {
				c.Subresource, c.Action = "status", historyv1.Deleted
			}
			if !yield(c, err) {
				return
			}
		}
	}
}
