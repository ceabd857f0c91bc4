package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/debugging"
)

// TestDebugging asks for profiles as everybody and as the admin, of a server with profiling and of
// one without.
func TestDebugging(t *testing.T) {
	var put string
	on := start(t, Config{Debugging: debugging.Options{Profiling: true, SetVerbosity: func(text string) (string, error) { put = text; return "set", nil }}})
	off := start(t, Config{})
	paths := []string{"/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile", "/debug/pprof/trace", "/debug/pprof/symbol", "/debug/flags", "/debug/flags/v"}
	for _, path := range paths {
		for _, s := range []*Server{on, off} {
			code, header, body := apitest.Do(t, apitest.Anonymous(t, s), "GET", s.URL()+path, "")
			if code != 403 || !strings.Contains(body, `forbidden: User \"system:anonymous\" cannot get path \"`+path+`\"`) {
				t.Errorf("%s as everybody: %d %s", path, code, body)
			}
			checkStatus(t, path, code, header, body)
		}
		if code, _, body := apitest.Do(t, apitest.Admin(t, off), "GET", off.URL()+path, ""); code != 404 || body != noPath {
			t.Errorf("%s without profiling: %d %s", path, code, body)
		}
	}
	admin := apitest.Admin(t, on)
	for path, has := range map[string]string{"/debug/pprof/": "full goroutine stack dump", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/flags": "<tr>v<br>"} {
		if code, _, body := apitest.Do(t, admin, "GET", on.URL()+path, ""); code != 200 || !strings.Contains(body, has) {
			t.Errorf("%s as the admin: %d %s", path, code, body)
		}
	}
	if code, _, body := apitest.Do(t, admin, http.MethodPut, on.URL()+"/debug/flags/v", "4"); code != 200 || body != "set\n" || put != "4" {
		t.Errorf("PUT /debug/flags/v: %d %s", code, body)
	}
	// Profiles are in no index, as in kube-apiserver.
	if _, _, body := apitest.Do(t, admin, "GET", on.URL()+"/", ""); strings.Contains(body, "debug") {
		t.Errorf("the index has %s", body)
	}
}
