package selectors_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/plinth-io/plinth/server/selectors"
)

// TestFieldsModel compares random selectors with upstream's, which compares term by term.
func TestFieldsModel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	names, values := []string{"a", "b", "c"}, []string{"", "1", "2", "3"}
	for range 3000 {
		var terms []string
		for range r.IntN(6) {
			terms = append(terms, names[r.IntN(3)]+[]string{"=", "==", "!="}[r.IntN(3)]+values[r.IntN(4)])
		}
		text := strings.Join(terms, ",")
		upstream := fields.ParseSelectorOrDie(text)
		f := selectors.Compile(upstream.Requirements(), nil)
		if f.Empty() != upstream.Empty() {
			t.Fatalf("%q: empty %v", text, f.Empty())
		}
		skipped := selectors.Compile(upstream.Requirements(), func(field string) bool { return field == "a" })
		any := false
		for i := range 64 {
			set := fields.Set{"a": values[i%4], "b": values[i/4%4], "c": values[i/16]}
			got := f.Matches(set)
			if want := upstream.Matches(set); got != want {
				t.Fatalf("%q, %v: %v, want %v", text, set, got, want)
			}
			if any = any || got; got && !skipped.Matches(set) {
				t.Fatalf("%q, %v: not without a", text, set)
			}
			value, exact := f.Exact("a")
			without := f.Without("a")
			if exact && set["a"] == value && without.Matches(set) != got {
				t.Fatalf("%q, %v: without the exact value of a %v, want %v", text, set, without.Matches(set), got)
			}
		}
		if f.Never() && any {
			t.Fatalf("%q says that it selects nothing", text)
		}
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "a=b": 1, "a=b,c=d": 2, `a=b\,c,d=e`: 2, `a=b\\,c=d`: 2, "a in (1,2,3),b": 4, `a\`: 1} {
		if got := selectors.Terms(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	most := strings.Repeat("a=b,", selectors.MostTerms-1) + "a=b"
	if err := selectors.Check("fieldSelector", most); err != nil {
		t.Error(err)
	}
	if err := selectors.Check("fieldSelector", most+",a=b"); err == nil || !strings.Contains(err.Error(), "fieldSelector has 1001 terms; at most 1000 are possible") {
		t.Error(err)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	many := url.QueryEscape("a in (" + strings.Repeat("x,", selectors.MostTerms) + "x)")
	for query, want := range map[string]string{
		"watch=1&fieldSelector=a%3Db":               "watch=1&fieldSelector=a%3Db",
		"watch=1&labelSelector=" + many:             "watch=1",
		"fieldSelector=a%3Db&labelSelector=" + many: "",
		"x=" + many: "x=" + many,
		"fieldSelector=a%3Db&fieldSelector=" + many + "&x=1": "x=1",
	} {
		r := httptest.NewRequest("GET", "/api/v1/pods?"+query, nil)
		if got := selectors.Bounded(r).URL.RawQuery; got != want {
			t.Errorf("%.40s: %.80s", query, got)
		}
		if r.URL.RawQuery != query {
			t.Errorf("%.40s: the request has changed", query)
		}
	}
}

// BenchmarkFields compares with a thousand terms, which takes about as long as with one.
func BenchmarkFields(b *testing.B) {
	for _, n := range []int{1, selectors.MostTerms} {
		var terms []string
		for i := range n {
			terms = append(terms, fmt.Sprintf("a!=%07d", i))
		}
		f := selectors.Compile(fields.ParseSelectorOrDie(strings.Join(terms, ",")).Requirements(), nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				f.Matches(fields.Set{"a": "0000500x"})
			}
		})
	}
}
