package recordedtest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRecorded has answers come again, and others.
func TestRecorded(t *testing.T) {
	const before = `# kube-apiserver 1.33 on things.
Omitted: uid
----
# create
POST /things

{"a":1}
=> 201
! 299 - "made at <time>"
{"at":"<time>","kept":true}
----
# get
GET /things/x?was=2001-02-03T04:05:06Z
=> 404
{"kind":"Status"}
----
# nothing to say
GET /things/y
=> 200
`
	now := time.Now().UTC().Format(time.RFC3339)
	for _, row := range []struct {
		name    string
		change  func(created, got *Exchange)
		release string
		want    string
	}{
		{name: "nothing was checked", change: func(_, _ *Exchange) {}, want: before},
		{name: "the same", want: before, change: func(created, _ *Exchange) {
			created.keepWarnings([]string{`299 - "made at ` + now + `"`})
			created.keepValues(values(t, `{"uid":"5","kept":true,"at":"`+now+`"}`))
		}},
		{name: "another release's", release: "1.40", change: func(created, got *Exchange) {
			created.keepWarnings(nil)
			created.keepValues(values(t, `{"uid":"5","until":"`+now+`","born":"2001-02-03T04:05:06Z","text":"<b> & 0a1b2c3d-0000-4000-8000-0123456789ab"}`))
			got.Code = 410
			got.keepWarnings([]string{`299 - "gone"`})
			got.keepValues(values(t, `{"n":1000000}["x"]`))
		}, want: `# kube-apiserver 1.40 on things.
Omitted: uid
----
# create
POST /things

{"a":1}
=> 201
{"born":"2001-02-03T04:05:06Z","text":"<b> & <uid>","until":"<time>"}
----
# get
GET /things/x?was=2001-02-03T04:05:06Z
=> 410
! 299 - "gone"
{"n":1000000}
["x"]
----
# nothing to say
GET /things/y
=> 200
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			exchanges, err := parse(before)
			if err != nil {
				t.Fatal(err)
			}
			row.change(exchanges[0], exchanges[1])
			release = row.release
			defer func() { release = "" }()
			if got := recorded(before, exchanges); got != row.want {
				t.Errorf("recorded:\n%s\nwant:\n%s", got, row.want)
			}
		})
	}
}

// TestRecordedAlike has every recording in the one form that make record gives it, so that what make
// record changes is what kube-apiserver answers.
func TestRecordedAlike(t *testing.T) {
	eachRecording(t, func(path string, exchanges []*Exchange) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if recorded(string(text), exchanges) != string(text) {
			t.Errorf("%s is not as make record writes it", filepath.Clean(path))
		}
	})
}

func TestAgain(t *testing.T) {
	defer func(before string) { record = before }(record)
	same, other := &Answer{Code: 200, Body: []byte(`{"a":1}`)}, &Answer{Code: 200, Body: []byte(`{"a":2}`)}
	warned := &Answer{Code: 200, Body: same.Body, Header: http.Header{"Warning": {"299"}}}
	for _, row := range []struct {
		name, record, exchange string
		answer                 *Answer
		begun                  time.Time
		want                   bool
	}{
		{"plinth is asked once", "", "wait", other, time.Now(), false},
		{"another answer", "dir", "wait until", other, time.Now(), true},
		{"another status", "dir", "wait until", &Answer{Code: 404, Body: same.Body}, time.Now(), true},
		{"a warning", "dir", "wait until", warned, time.Now(), true},
		{"the same answer", "dir", "wait until", same, time.Now(), false},
		{"in other words for long", "dir", "wait until", other, time.Now().Add(-waitsForWords - time.Second), false},
		{"another status for long", "dir", "wait until", &Answer{Code: 404}, time.Now().Add(-waitsForWords - time.Second), true},
		{"for too long", "dir", "wait until", &Answer{Code: 404}, time.Now().Add(-waits - time.Second), false},
		{"not one to wait for", "dir", "create", other, time.Now(), false},
	} {
		record = row.record
		e := &Exchange{Name: row.exchange, Code: 200, Values: values(t, `{"a":1}`)}
		if got := e.again(row.answer, row.begun); got != row.want {
			t.Errorf("%s: asked again: %v", row.name, got)
		}
	}
}
