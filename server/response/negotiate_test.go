package response

import (
	"fmt"
	"net/http/httptest"
	"testing"
)

// TestNegotiate picks the encoding of the answer from Accept, the parameter pretty and the user
// agent.
func TestNegotiate(t *testing.T) {
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, row := range []struct {
		offer         Offer
		accept, query string
		agent         string
		media         string // empty: nothing is acceptable
		form          Form
		pretty        bool
	}{
		{offer: ResourceObjects, media: MediaJSON},
		{offer: ResourceObjects, accept: "*/*", media: MediaJSON},
		{offer: ResourceObjects, accept: MediaProtobuf, media: MediaProtobuf},
		{offer: CustomObjects, accept: MediaProtobuf},
		{offer: CustomObjects, accept: MediaProtobuf + ", " + MediaJSON, media: MediaJSON},
		{offer: ResourceObjects, accept: MediaYAML, media: MediaYAML},
		{offer: ResourceObjects, accept: "text/html"},
		{offer: ResourceObjects, accept: asTable, media: MediaJSON, form: AsTable},
		{offer: UntabledObjects, accept: asTable},
		{offer: UntabledObjects, accept: asTable + "," + MediaJSON, media: MediaJSON},
		{offer: ResourceObjects, accept: MediaCBOR},
		{offer: ResourceObjects.WithCBOR(true), accept: MediaCBOR, media: MediaCBOR},
		{offer: CustomObjects.WithCBOR(true), accept: MediaCBOR + ";stream=watch", media: MediaCBOR},
		{offer: ResourceObjects.WithCBOR(true), media: MediaJSON},
		{offer: ResourceObjects.WithCBOR(true), accept: MediaCBOR + ";as=Table;v=v1;g=meta.k8s.io"},
		{offer: ResourceObjects.WithCBOR(true), accept: MediaCBOR + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io", media: MediaCBOR, form: AsMetadata},
		{offer: ResourceObjects.WithCBOR(true), agent: "curl/8", accept: MediaCBOR, media: MediaCBOR},
		{offer: ResourceObjects, query: "?pretty=true", media: MediaJSON, pretty: true},
		{offer: ResourceObjects, agent: "curl/8", media: MediaJSON, pretty: true},
		{offer: ResourceObjects, agent: "curl/8", query: "?pretty=0", media: MediaJSON},
		{offer: ResourceObjects, agent: "curl/8", accept: MediaProtobuf, media: MediaProtobuf},
	} {
		t.Run(fmt.Sprintf("%+v %s %s %s", row.offer, row.accept, row.query, row.agent), func(t *testing.T) {
			for range 2 { // the second time as it is remembered
				r := httptest.NewRequest("GET", "/api/v1/pods"+row.query, nil)
				r.Header.Set("User-Agent", row.agent)
				if row.accept != "" {
					r.Header.Set("Accept", row.accept)
				}
				out, ok := Negotiate(r, row.offer)
				if ok != (row.media != "") || out.MediaType != row.media || out.Form != row.form || out.Pretty != row.pretty {
					t.Errorf("got %+v, %t", out, ok)
				}
			}
		})
	}
}
