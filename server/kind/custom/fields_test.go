package custom

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestFieldsRead(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                  "[] true",
		"true":                              "[] true",
		"self.a < self.b.c":                 "[a b] true",
		"has(self.a) && oldSelf.b == 1":     "[a b] true",
		"self.list.all(x, x.y in self.set)": "[list set] true",
		"self.x__dash__y == 1":              "[x-y] true",
		"self == oldSelf":                   "[] false",
		"self.a == 1 && size(self) > 0":     "[a] false",
		"self.list.all(self, self > 1)":     "[list] false",
		"self['a'] == 1":                    "[] false",
		"oldSelf.hasValue()":                "[] false",
		"self.?a.orValue(1) == 1":           "[] false",
		"self. ":                            "[] false",
	} {
		fields := map[string]bool{}
		known := fieldsRead(expression, fields)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(fields)), known); got != want {
			t.Errorf("%q reads %s, not %s", expression, got, want)
		}
	}
}
