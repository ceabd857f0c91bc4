package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestCopyBehind has progress of copies: only one that is behind, and comes no closer in any round, is warned of.
func TestCopyBehind(t *testing.T) {
	for name, c := range map[string]struct {
		behind func(second int64) int64
		walks  bool
		warns  bool
	}{
		"as fast":            {func(int64) int64 { return 5000 }, false, true},
		"faster":             {func(s int64) int64 { return 1000 + 10*s }, false, true},
		"a little slower":    {func(s int64) int64 { return 1_000_000 - s }, false, true},
		"slower":             {func(s int64) int64 { return 100_000 - 700*s }, false, false},
		"by turns":           {func(s int64) int64 { return 9000 * (s % 10) }, false, false},
		"nearly there":       {func(int64) int64 { return 150 }, false, false},
		"objects are copied": {func(s int64) int64 { return 1000 + 10*s }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				p := copyProgress{logger: logging.New(&out, logging.Options{Format: logging.Text}), pace: pace{time.Now()}}
				for s := range int64(120) {
					time.Sleep(time.Second)
					done := transfer.Copied{Objects: 10, Changes: s, Behind: c.behind(s)}
					if c.walks {
						done.Objects += s
					}
					p.tell(done)
				}
				if lines := strings.Count(out.String(), "\n"); lines != int(2*time.Minute/tellEvery) || strings.Count(out.String(), " behind=") != lines {
					t.Errorf("%s", &out)
				}
				if warns := strings.Contains(out.String(), "WARN  the source is written faster than the target takes it"); warns != c.warns {
					t.Errorf("warned: %v\n%s", warns, &out)
				}
			})
		})
	}
}

// TestCopyCutOff cancels a copy. The error says how to go on, or to empty the target, and serve refuses
// it. The next copy goes on.
func TestCopyCutOff(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := logtest.SQLite(t), logtest.Postgres(t)
	fill(t, from, 20_000)
	must(t, openedLog(t, to).Close())
	conn, err := pgx.Connect(ctx, to)
	must(t, err)
	defer conn.Close(context.Background())

	// A copy takes less than a second. This one waits in its middle until it has the signal.
	_, err = conn.Exec(ctx, `
		SELECT pg_advisory_lock(4711);
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$;
		CREATE TRIGGER wait BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.key LIKE '%/c010000') EXECUTE FUNCTION wait()`)
	must(t, err)
	cmd, stderr := plinth(t, nil, "copy", "--from", from, "--to", to)
	must(t, cmd.Start())
	soon(t, "objects are copied", func() (copied bool) {
		must(t, conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM log)`).Scan(&copied))
		return copied
	})
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = conn.Exec(ctx, `SELECT pg_advisory_unlock(4711)`)
	must(t, err)
	_ = cmd.Wait()
	want := "objects; plinth does not serve what is in " + dialects.Describe(to) +
		": copy again to go on; or, to begin anew, run DROP VIEW objects, kv, history; DROP TABLE log, meta, lease, author, past, kept, schema_migrations in the target\n"
	expectCopy(t, stderr.String(), cmd.ProcessState.ExitCode(), "plinth: interrupted after ", want)
	code, out := runPlinth(t, "serve", "--listen=127.0.0.1:0", "--dsn", to)
	if code != 2 || !strings.Contains(out, "copy or import again, which goes on with it") || strings.Count(complaint(out), "\n") != 1 {
		t.Errorf("serve: exit code %d: %s", code, out)
	}
	other := logtest.SQLite(t)
	fill(t, other, 1000)
	code, out = runPlinth(t, "copy", "--from", other, "--to", to)
	expectCopy(t, out, code, "part of a copy", "from another database", "plinth does not serve it: run DROP VIEW")
	_, err = conn.Exec(ctx, `DROP TRIGGER wait ON log`)
	must(t, err)
	if code, out := runPlinth(t, "copy", "--from", from, "--to", to); code != 0 {
		t.Errorf("the next copy: exit code %d: %s", code, out)
	}
	var objects int
	must(t, conn.QueryRow(ctx, `SELECT count(*) FROM log`).Scan(&objects))
	if objects != 20_000 {
		t.Errorf("there are %d rows", objects)
	}
}

// TestCopyToItself names one database twice, by two names where it has them.
func TestCopyToItself(t *testing.T) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		from := d.Fresh(t)
		fill(t, from, 1000)
		again := strings.Replace(from, "@127.0.0.1:", "@localhost:", 1)
		if d.Name == "sqlite" {
			link := filepath.Join(t.TempDir(), "link.db")
			must(t, os.Symlink(strings.TrimPrefix(from, "sqlite://"), link))
			again = "sqlite://" + link
		}
		for _, to := range []string{from, again} {
			for _, more := range [][]string{nil, {"--online"}} {
				code, out := runPlinth(t, append([]string{"copy", "--from", from, "--to", to}, more...)...)
				if code != 2 || !strings.HasPrefix(out, "plinth: --from and --to are the same database, "+dialects.Describe(from)+"; write the DSN of another one") || strings.Count(out, "\n") != 1 {
					t.Errorf("to %s: exit code %d: %s", to, code, out)
				}
			}
		}
		log := openedLog(t, from)
		defer log.Close()
		must(t, changelog.HalfCopied(t.Context(), log))
		must(t, changelog.CheckMoved(t.Context(), log))
	})
}

// fill makes a log with n objects.
func fill(t *testing.T, dsn string, n int) {
	t.Helper()
	log := openedLog(t, dsn)
	for done := 0; done < n; {
		var batch []changelog.Change
		for ; len(batch) < 1000; done++ {
			batch = append(batch, changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/default/c%06d", done), Value: []byte(`{"metadata":{}}`)})
		}
		_, err := log.Append(t.Context(), batch)
		must(t, err)
	}
	must(t, log.Close())
}

func expectCopy(t *testing.T, out string, code int, want ...string) {
	t.Helper()
	for _, w := range want {
		if code != 1 || !strings.Contains(out, w) || strings.Count(complaint(out), "\n") != 1 {
			t.Errorf("exit code %d: %s; want %s", code, out, w)
		}
	}
}

func runPlinth(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	cmd, out := plinth(t, nil, args...)
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String()
}

func openedLog(t *testing.T, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
	must(t, err)
	return log
}
