package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	. "github.com/plinth-io/plinth/sqlstore/backup"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// content is a backup in memory.
type content struct {
	header  Header
	authors map[int64]changelog.Author
	old     []changelog.OldRow
	rows    []changelog.Row
}

func (c *content) write(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, c.header)
	must(t, err)
	for n := range int64(len(c.authors)) {
		must(t, w.Author(n+1, c.authors[n+1]))
	}
	for i := range c.old {
		must(t, w.Old(&c.old[i]))
	}
	for i := range c.rows {
		must(t, w.Row(&c.rows[i]))
	}
	_, err = w.Close()
	must(t, err)
	if w.Written() != int64(file.Len()) {
		t.Errorf("%d bytes are written, and it says %d", file.Len(), w.Written())
	}
	return file.Bytes()
}

// read reads a whole backup.
func read(from io.Reader) (c content, err error) {
	r, err := NewReader(from)
	if err != nil {
		return c, err
	}
	defer r.Close()
	c = content{header: r.Header, authors: map[int64]changelog.Author{}}
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return c, nil
		case err != nil:
			return c, err
		case rec.Author != nil:
			c.authors[rec.Number] = *rec.Author
		case rec.Old != nil:
			old := *rec.Old
			old.Value, old.AuditID = bytes.Clone(old.Value), bytes.Clone(old.AuditID)
			c.old = append(c.old, old)
		default:
			row := *rec.Row
			row.Value, row.AuditID = bytes.Clone(row.Value), bytes.Clone(row.AuditID)
			c.rows = append(c.rows, row)
		}
	}
}

// random makes a backup of n rows out of a seed.
func random(seed uint64, n int) *content {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &content{
		header:  Header{Program: "v1", Cluster: "c", Revision: 1 << 40, Floor: 3, Swept: 2, Time: time.UnixMilli(1e12).UTC(), History: true, About: int64(n), Kept: map[string]int64{"": 3}, Marks: map[string]string{"origin/x": "12"}},
		authors: map[int64]changelog.Author{1: {User: "a", Manager: "kubectl"}, 2: {Impersonator: "ü", Verb: "patch", Subresource: "status"}},
	}
	id, at := int64(0), int64(1e12)
	for range n {
		id, at = id+1+r.Int64N(1000), at+r.Int64N(1000)
		row := changelog.Row{Revision: id, CreateRevision: id - r.Int64N(id), At: at, Deleted: r.IntN(5) == 0, Author: r.Int64N(3), Key: fmt.Sprintf("/registry/core/configmaps/default/c%d", r.IntN(100))}
		row.Value = object(row.Key, r.IntN(300))
		if r.IntN(2) == 0 {
			row.AuditID = []byte(fmt.Sprintf("audit-%d", r.Int64()))
		}
		if r.IntN(4) == 0 {
			c.old = append(c.old, changelog.OldRow{Row: row, UntilID: id + r.Int64N(9), UntilAt: at + r.Int64N(9), Expires: r.Int64()})
			continue
		}
		c.rows = append(c.rows, row)
	}
	return c
}

// object is the value of a ConfigMap with n bytes of data.
func object(key string, n int) []byte {
	name := key[len("/registry/core/configmaps/default/"):]
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"a":%q}}`, name, bytes.Repeat([]byte("x"), n))
}

func openLog(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(context.Background(), dsn, dialects.Options{})
	must(t, err)
	t.Cleanup(func() { log.Close() })
	return log
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
