package etcdbench

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunRefuses(t *testing.T) {
	url, err := freeURL()
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	silentURL := "http://" + silent.Addr().String()
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"nothing":              {Options{}, "there is nothing to measure"},
		"unknown database":     {Options{DSNs: []string{"oracle://x"}}, "begins with oracle://, which is not known"},
		"nobody listens":       {Options{Others: []Other{{Name: "etcd", URL: url}}}, "connection refused"},
		"nobody answers":       {Options{Others: []Other{{Name: "etcd", URL: silentURL}}}, "etcd: " + silentURL + " does not answer: no answer in time"},
		"empty authority":      {Options{Others: []Other{{Name: "etcd", URL: url}}, TLS: TLS{CA: empty}}, "has no certificate"},
		"missing certificate":  {Options{Others: []Other{{Name: "etcd", URL: url}}, TLS: TLS{Cert: "absent.crt"}}, "absent.crt"},
		"endpoint that fails":  {Options{DSNs: []string{"sqlite://x"}, Command: []string{"sh", "-c", "echo no such luck >&2; exit 3"}}, "no such luck"},
		"endpoint that is not": {Options{DSNs: []string{"sqlite://x"}, Command: []string{"./absent"}}, "start ./absent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Dir, c.o.Quick = t.TempDir(), true
			_, err := Run(context.Background(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(c.o.Dir, "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
