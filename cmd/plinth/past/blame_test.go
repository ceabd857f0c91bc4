package past

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// versionsOf returns versions 1, 2, 3 of YAML texts; the first has created the object.
func versionsOf(t *testing.T, texts ...string) (all []*historyv1.Version) {
	t.Helper()
	for i, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte("kind: K\napiVersion: v1\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		v := &historyv1.Version{Description: historyv1.Description{Revision: int64(i + 1), Action: historyv1.Changed}}
		if v.Data.Raw = raw; i == 0 {
			v.Action = historyv1.Created
		}
		all = append(all, v)
	}
	return all
}

// ports has a manager that owns a list of ports and a set.
const ports = `metadata: {managedFields: [{manager: m, fieldsType: FieldsV1, fieldsV1: {"f:l": {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:v": {}}}, "f:set": {'v:"a"': {}}}}]}
`

func TestBlame(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		versions []string
		want     string
	}{
		"a value that comes back is of the change that brought it back": {
			[]string{"a: 1", "a: 2", "a: 1"}, "3 a: 1"},
		"a value that stays is of the first": {
			[]string{"a: 1", "a: 1\nb: 2", "b: 2\na: 1"}, "1 a: 1\n2 b: 2"},
		"another type is another value": {
			[]string{"a: 1", `a: "1"`}, `2 a: "1"`},
		"all lines of a text are of one change": {
			[]string{"a: |\n  x\n  y\nb: 1", "a: |\n  x\n  z\nb: 1"}, "2 a: |\n2   x\n2   z\n1 b: 1"},
		"a map in place of a value is new as a whole": {
			[]string{"a: 1", "a:\n  b: 1"}, "2 a:\n2   b: 1"},
		"items are followed by their name": {
			[]string{"l:\n- name: x\n  v: 1\n- name: z\n  v: 1", "l:\n- name: z\n  v: 1\n- name: x\n  v: 2"},
			"1 l:\n1 - name: z\n1   v: 1\n1 - name: x\n2   v: 2"},
		"items are followed by the merge keys that a manager tells": {
			[]string{
				ports + "l:\n- {port: 53, protocol: TCP, v: 1}\n- {port: 53, protocol: UDP, v: 1}",
				ports + "l:\n- {port: 53, protocol: UDP, v: 1}\n- {port: 53, protocol: TCP, v: 2}",
			}, "1 l:\n1 - port: 53\n1   protocol: UDP\n1   v: 1\n1 - port: 53\n1   protocol: TCP\n2   v: 2"},
		"and not by a name that is none": {
			[]string{
				ports + "l:\n- {name: x, port: 1, protocol: TCP}\n- {name: z, port: 2, protocol: TCP}",
				ports + "l:\n- {name: z, port: 1, protocol: TCP}\n- {name: x, port: 2, protocol: TCP}",
			}, "1 l:\n2 - name: z\n1   port: 1\n1   protocol: TCP\n2 - name: x\n1   port: 2\n1   protocol: TCP"},
		"unless two items have the same": {
			[]string{ports + "l:\n- {port: 1, v: 1}\n- {port: 1, v: 2}", ports + "l:\n- {port: 1, v: 3}\n- {port: 1, v: 2}"},
			"1 l:\n1 - port: 1\n2   v: 3\n1 - port: 1\n1   v: 2"},
		"items of a set are followed by their value": {
			[]string{ports + "set: [a, b, c]", ports + "set: [c, a, d, b]"}, "1 set:\n1 - c\n1 - a\n2 - d\n1 - b"},
		"items without names are followed by their content": {
			[]string{"l:\n- {b: 1, c: 1}\n- {b: 2, c: 1}", "l:\n- {b: 0, c: 0}\n- {b: 1, c: 1}\n- {b: 2, c: 3}"},
			"1 l:\n2 - b: 0\n2   c: 0\n1 - b: 1\n1   c: 1\n1 - b: 2\n2   c: 3"},
		"the same words, one more": {
			[]string{"l: [a, a]", "l: [a, a, a]"}, "1 l:\n1 - a\n1 - a\n2 - a"},
		"lists in lists": {
			[]string{"l: [[a], [b]]", "l: [[a], [b, c]]"}, "1 l:\n1 - - a\n1 - - b\n2   - c"},
		"a text with Unicode's own line ends": {
			[]string{"a: \"x\\u2028y\\nz\"\nb: 1", "a: \"x\\u2028y\\nz\"\nb: 2"}, "1 a: |-\n1   x\u2028  y\n1   z\n2 b: 2"},
		"empty and not": {
			[]string{"a: {}\nb: []", "a: {}\nb: []\nc: null"}, "1 a: {}\n1 b: []\n2 c: null"},
	} {
		lines, err := blame(versionsOf(t, test.versions...), View{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range lines {
			if !strings.HasPrefix(line.Text, "kind") && !strings.HasPrefix(line.Text, "apiVersion") && !strings.Contains(line.Text, "metadata") {
				got = append(got, fmt.Sprintf("%d %s", line.Change.Revision, line.Text))
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestBlameOlder has a history whose beginning is not kept.
func TestBlameOlder(t *testing.T) {
	t.Parallel()
	all := versionsOf(t, "a: 1\nb: 1", "a: 1\nb: 2")
	all[0].Action = historyv1.Changed
	lines, err := blame(all, View{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if line.Older != (line.Change.Revision == 1) {
			t.Errorf("%s: older: %v", line.Text, line.Older)
		}
	}
}

// TestCommonItemsLarge bounds the work for lists of many items.
func TestCommonItemsLarge(t *testing.T) {
	t.Parallel()
	var a, b []string
	for i := range 5000 {
		a = append(a, fmt.Sprint(i))
		b = append(b, fmt.Sprint(i))
	}
	for i := 100; i < 4900; i++ {
		b[i] += "'"
	}
	same := commonItems(a, b)
	if len(same) != 200 || same[99] != [2]int{99, 99} || same[100] != [2]int{4900, 4900} {
		t.Errorf("%d items are the same", len(same))
	}
}
