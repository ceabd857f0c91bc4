package rest_test

import (
	"net/url"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"", "a=b", "a in (b,c),!d", "a notin (", "metadata.name=x", "metadata.name!=x,metadata.namespace=default", "a==b=c", "\x00", "ä=ö", "a>5"} {
		f.Add(s, s)
	}
	h := newHarness(f, rest.Options{}, nothingStays)
	h.do("POST", configMaps, configMap("x", "1")).want(201)
	f.Fuzz(func(t *testing.T, labels, fields string) {
		h := *h
		h.t = t
		query := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}}
		a := h.do("GET", configMaps+"?"+query.Encode(), "")
		checkRefusal(t, &h, a, h.store.Revision())
	})
}
