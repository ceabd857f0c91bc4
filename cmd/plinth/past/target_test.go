package past

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Words{
		"":                         nil,
		"cm":                       {{"cm", ""}},
		"cm a":                     {{"cm", "a"}},
		"cm a b":                   {{"cm", "a"}, {"cm", "b"}},
		"cm/a":                     {{"cm", "a"}},
		"cm/a deploy/b":            {{"cm", "a"}, {"deploy", "b"}},
		"clusterroles/system:node": {{"clusterroles", "system:node"}},
	} {
		got, err := SplitWords(strings.Fields(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, args := range [][]string{{"cm/"}, {"/a"}, {"cm/a/b"}, {"cm", "cm/a"}, {"cm/a", "b"}, {""}, {"cm", ""}} {
		var mistake *Mistake
		if _, err := SplitWords(args); !errors.As(err, &mistake) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
