package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/prometheus/client_golang/prometheus"
)

func TestDatabase(t *testing.T) {
	asked, fail := 0, error(nil)
	d := NewDatabase(func(context.Context) (changelog.Size, error) {
		asked++
		return changelog.Size{Rows: 7, Past: 20, PastBytes: 512, PastData: 300, Bytes: 4096, Free: 1 << 30}, fail
	})
	m := New()
	m.Register(d)
	for range 5 {
		wantLines(t, scrape(m), "plinth_log_rows 7", "plinth_kept_rows 20", "plinth_kept_bytes 512", "plinth_kept_data_bytes 300", "plinth_database_bytes 4096", "plinth_database_free_bytes 1.073741824e+09")
	}
	if asked != 1 {
		t.Errorf("five scrapes asked the database %d times", asked)
	}
	d.until, fail = time.Time{}, errors.New("away")
	if text := scrape(m); strings.Contains(text, "plinth_log_rows 7") || asked != 2 {
		t.Errorf("while the database is away, after %d questions:\n%s", asked, text)
	}
	d.until, fail = time.Time{}, nil
	wantLines(t, scrape(m), "plinth_log_rows 7")
}

// A database that is slow to answer is asked less often.
func TestDatabaseSlow(t *testing.T) {
	d := NewDatabase(func(context.Context) (changelog.Size, error) {
		time.Sleep(400 * time.Millisecond) // is what is measured
		return changelog.Size{Free: -1}, nil
	})
	d.now()
	if rest := time.Until(d.until); rest < sizeFresh+time.Second {
		t.Errorf("asks again in %v after a question of 0.4 s", rest)
	}
	m := New()
	m.Register(d)
	if strings.Contains(scrape(m), "plinth_database_free_bytes ") {
		t.Error("free space is shown that is not known")
	}
}

func TestCertificatesAndInfo(t *testing.T) {
	m := New()
	m.Register(Info(prometheus.Labels{"version": "v1", "dialect": "sqlite"}), Certificates{func() map[string]time.Time {
		return map[string]time.Time{"ca": time.Unix(2000000000, 0)}
	}})
	wantLines(t, scrape(m), `plinth_info{dialect="sqlite",version="v1"} 1`, `plinth_certificate_expiration_seconds{name="ca"} 2e+09`)
}
