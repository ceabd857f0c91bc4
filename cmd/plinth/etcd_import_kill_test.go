package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// manyKeys is how many keys the source of an import has that is killed.
const manyKeys = 20_000

// bigKine makes a database of kine with manyKeys keys.
func bigKine(t *testing.T) (dsn string) {
	t.Helper()
	dsn = "sqlite://" + filepath.Join(t.TempDir(), "kine.db")
	loadKine(t, logtest.Dialects[0], dsn)
	db, err := sql.Open("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
	must(t, err)
	defer db.Close()
	_, err = db.Exec(`
		DELETE FROM kine WHERE name <> 'compact_rev_key';
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value)
		SELECT '/registry/' || i, 1, 0, 0, 0, 0, randomblob(200) FROM n`, manyKeys)
	must(t, err)
	return dsn
}

// TestEtcdImportKilled kills imports at all moments. What is left is either empty or refused, until all
// is imported; then it is whole. What the refusal advises makes room for another import.
func TestEtcdImportKilled(t *testing.T) {
	t.Parallel()
	from := bigKine(t)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		half := 0
		for round := 0; half == 0 && round < 10; round++ { // a busy machine may miss the middle
			for after := 20 * time.Millisecond; importUntil(t, d, from, after, &half); after *= 2 {
			}
		}
		if half == 0 {
			t.Error("no import was killed in the middle")
		}
	})
}

// importUntil imports into a new database, kills the import after a time, and says whether it was in
// time. half counts databases that are refused.
func importUntil(t *testing.T, d logtest.Dialect, from string, after time.Duration, half *int) (killed bool) {
	t.Helper()
	to := d.Fresh(t)
	cmd, out := plinth(t, nil, "etcd", "import", "--from-kine="+from, "--dsn="+to)
	must(t, cmd.Start())
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	killed = cmd.Wait() != nil
	kill.Stop()
	keys, refusal := servedKeys(t, to)
	switch {
	case !killed && keys != manyKeys:
		t.Errorf("%d keys of %d are served: %s%s", keys, manyKeys, out, refusal)
	case refusal != "":
		if checkHalf(t, d, from, to, refusal, *half == 0) {
			*half++
		}
	case keys != 0 && keys != manyKeys:
		t.Errorf("killed after %v, %d keys of %d are served", after, keys, manyKeys)
	}
	return killed
}

// servedKeys returns how many keys plinth etcd serves, or what it writes when it refuses to.
func servedKeys(t *testing.T, dsn string) (keys int64, refusal string) {
	t.Helper()
	cmd, stderr := plinth(t, nil, "etcd", "--listen-client-urls=http://127.0.0.1:0", "--dsn="+dsn)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 2 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		return 0, complaint(stderr.String())
	}
	url, _, _ := strings.Cut(strings.TrimPrefix(line, "export ETCDCTL_ENDPOINTS="), " ")
	p := &etcdProcess{t: t, cmd: cmd, stderr: stderr, urls: []string{strings.TrimSpace(url)}}
	defer p.stop()
	got, err := p.client(nil).Get(withPatience(t), "", clientv3.WithFromKey(), clientv3.WithCountOnly())
	must(t, err)
	return got.Count, ""
}

// advised finds in a refusal how a target is emptied.
var advised = regexp.MustCompile(`; (?:run (DROP .*) in the target|remove (.*)), then import again`)

// checkHalf checks the refusal of a target, and, if again, imports as it says. It tells whether the target has a part of the
// keys: an import that was killed when it had marked the target, and written nothing, is made again without advice.
func checkHalf(t *testing.T, d logtest.Dialect, from, to, refusal string, again bool) (half bool) {
	t.Helper()
	whole := func(after string) {
		if keys, refusal := servedKeys(t, to); keys != manyKeys {
			t.Errorf("after %s %d keys of %d are served: %s", after, keys, manyKeys, refusal)
		}
	}
	code, out := runPlinth(t, "etcd", "import", "--from-kine="+from, "--dsn="+to)
	if code == 0 {
		whole("an import that wrote nothing")
		return false
	}
	for _, line := range []string{refusal, complaint(out)} {
		if !strings.Contains(line, "the database holds a part of a copy that was not finished") || strings.Count(line, "\n") != 1 || code != 1 {
			t.Fatalf("exit code %d: %s", code, line)
		}
	}
	if !again {
		return true
	}
	advice := advised.FindStringSubmatch(refusal)
	if advice == nil {
		t.Fatalf("no advice: %s", refusal)
	}
	if advice[1] == "" {
		names := strings.Fields(strings.NewReplacer(",", "", " and ", " ").Replace(advice[2]))
		must(t, exec.Command("rm", append([]string{"-f"}, names...)...).Run())
	} else {
		runSQL(t, d, to, advice[1])
	}
	if code, out := runPlinth(t, "etcd", "import", "--from-kine="+from, "--dsn="+to); code != 0 {
		t.Fatalf("after %s: exit code %d: %s", advice[0], code, out)
	}
	whole(advice[0])
	return true
}

// runSQL runs statements on a database server.
func runSQL(t *testing.T, d logtest.Dialect, dsn, statements string) {
	t.Helper()
	for statement := range strings.SplitSeq(statements, "; ") {
		if d.Name == "postgres" {
			conn, err := pgx.Connect(t.Context(), dsn)
			must(t, err)
			_, err = conn.Exec(t.Context(), statement)
			must(t, err)
			must(t, conn.Close(t.Context()))
			continue
		}
		db, err := dbserver.OpenMySQL(dsn)
		must(t, err)
		_, err = db.Exec(statement)
		must(t, err)
		must(t, db.Close())
	}
}

// TestEtcdImportKilledEarly leaves what an import into kine's own database does that is killed when it
// has made plinth's tables: the empty key space is not served in place of kine's.
func TestEtcdImportKilledEarly(t *testing.T) {
	t.Parallel()
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		loadKine(t, d, dsn)
		log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd})
		must(t, err)
		must(t, log.Close())
		if keys, refusal := servedKeys(t, dsn); !strings.Contains(refusal, "has the keys of kine, which were not imported") {
			t.Errorf("%d keys are served: %s", keys, refusal)
		}
		if code, out := runPlinth(t, "etcd", "import", "--from-kine="+dsn, "--dsn="+dsn); code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
		if keys, refusal := servedKeys(t, dsn); keys != 6 {
			t.Errorf("%d keys are served: %s", keys, refusal)
		}
	})
}

// TestEtcdImportInterrupted ends imports before they write and in the middle. The error says what is left.
func TestEtcdImportInterrupted(t *testing.T) {
	t.Parallel()
	from := bigKine(t)
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		ended, end := context.WithCancel(t.Context())
		end()
		err := importKine(ended, from, dsn, slog.New(slog.DiscardHandler), io.Discard)
		if err == nil || err.Error() != "interrupted before a key was imported; import again" {
			t.Errorf("at the beginning: %v", err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		table, err := kine.Open(ctx, from)
		must(t, err)
		defer table.Close()
		extent, err := table.Extent(ctx)
		must(t, err)
		target, err := openLog(ctx, "--dsn", dsn, dialects.Options{Kind: changelog.KindEtcd})
		must(t, err)
		defer target.Close()
		// It tells its progress after the first page.
		i := &kineImport{table: table, extent: extent, living: map[string]kept{}, leases: map[int64]bool{}, pace: pace{time.Unix(1, 0)}, logger: slog.New(slog.NewTextHandler(endsAt(end), nil))}
		err = i.run(ctx, target, dsn, io.Discard)
		first := importPage - 1 // one row is kine's own
		want := fmt.Sprintf("interrupted after %d of %d rows; plinth does not serve what is in %s: %s, then import again", first, extent.Rows, dialects.Describe(dsn), emptying(dsn))
		if err == nil || err.Error() != want {
			t.Errorf("in the middle: %v; want %s", err, want)
		}
	})
}

// endsAt is a Writer that calls a func.
type endsAt func()

func (e endsAt) Write(p []byte) (int, error) {
	e()
	return len(p), nil
}
