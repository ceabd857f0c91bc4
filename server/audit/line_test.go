package audit

import (
	"bytes"
	"math/rand"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	apiaudit "k8s.io/apiserver/pkg/audit"
)

var upstream = apiaudit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion)

// checkLine compares a line with upstream's.
func checkLine(t *testing.T, e *auditinternal.Event) {
	t.Helper()
	want, err := runtime.Encode(upstream, e)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := line(nil, e)
	if !ok {
		t.Fatalf("left to upstream: %s", want)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Every event but those with objects has upstream's bytes: events as they are, and events full of
// anything.
func TestLine(t *testing.T) {
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.FixedZone("", 3600)))
	checkLine(t, &auditinternal.Event{})
	checkLine(t, &auditinternal.Event{
		Level: auditinternal.LevelMetadata, AuditID: "a", Stage: auditinternal.StageResponseComplete, Verb: "get",
		RequestURI: "/api/v1/pods?labelSelector=a%3Db&limit=<5>", UserAgent: "kubectl\tü\x7f\xff\u2028",
		User:             authenticationv1.UserInfo{Username: "ada", Extra: map[string]authenticationv1.ExtraValue{"b": nil, "a": {"\"", "\\"}, "c": {}}},
		ImpersonatedUser: &authenticationv1.UserInfo{}, AuthenticationMetadata: &auditinternal.AuthenticationMetadata{},
		SourceIPs: []string{"127.0.0.1", "::1"}, ObjectRef: &auditinternal.ObjectReference{},
		ResponseStatus:           &metav1.Status{Code: 200},
		RequestReceivedTimestamp: at, StageTimestamp: at,
		Annotations: map[string]string{"b": "1", "a": "<>", "c": `by "a" & "b"`, "d": `"&"`, "e": `"&" by ü`},
	})
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), apiaudit.Codecs)
	for range 2000 {
		var e auditinternal.Event
		random.Fill(&e)
		e.TypeMeta, e.RequestObject, e.ResponseObject = metav1.TypeMeta{}, nil, nil
		checkLine(t, &e)
	}
}

// Events with objects are upstream's.
func TestLineOfObjects(t *testing.T) {
	if _, ok := line(nil, &auditinternal.Event{RequestObject: &runtime.Unknown{}}); ok {
		t.Error("a request's object was left out")
	}
	if _, ok := line(nil, &auditinternal.Event{ResponseObject: &runtime.Unknown{}}); ok {
		t.Error("a response's object was left out")
	}
}
