package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"
)

// TestJoinTokenRefused: however the end of the wait meets a request or a client's own limit, the answer says that
// the server does not accept tokens.
func TestJoinTokenRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	}))
	defer server.Close()
	token := &joinToken{id: "abcdef", text: "abcdef.0123456789abcdef"}
	for _, within := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond} {
		err := token.check(t.Context(), &clientrest.Config{Host: server.URL, QPS: 1, Burst: 1}, within)
		if !errors.Is(err, errNoTokens) {
			t.Errorf("within %s: %v", within, err)
		}
	}
}
