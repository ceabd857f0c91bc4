package etcdbench

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/bench/measure"
)

func TestRunRefuses(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	url := closed.URL
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
	other := func(at string) []measure.Other { return []measure.Other{{Name: "etcd", At: at}} }
	own := func(command ...string) measure.Options {
		return measure.Options{DSNs: []string{"sqlite://x"}, Command: command}
	}
	for name, c := range map[string]struct {
		o    measure.ComparisonOptions
		want string
	}{
		"unknown database":     {measure.ComparisonOptions{Options: measure.Options{DSNs: []string{"oracle://x"}}}, "begins with oracle://, which is not known"},
		"nobody listens":       {measure.ComparisonOptions{Others: other(url)}, "connection refused"},
		"nobody answers":       {measure.ComparisonOptions{Others: other(silentURL)}, "etcd: " + silentURL + " does not answer: no answer in time"},
		"empty authority":      {measure.ComparisonOptions{Others: other(url), TLS: measure.TLS{CA: empty}}, "has no certificate"},
		"missing certificate":  {measure.ComparisonOptions{Others: other(url), TLS: measure.TLS{Cert: "absent.crt"}}, "absent.crt"},
		"endpoint that fails":  {measure.ComparisonOptions{Options: own("sh", "-c", "echo no such luck >&2; exit 3")}, "no such luck"},
		"endpoint that is not": {measure.ComparisonOptions{Options: own("./absent")}, "start ./absent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Dir, c.o.Quick = t.TempDir(), true
			_, err := Run(context.Background(), Options{ComparisonOptions: c.o})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(c.o.Dir, "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
