package scrub_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	. "github.com/plinth-io/plinth/sqlstore/scrub"
)

// fillMany makes a log of some hundred kilobytes, with old versions beside it if they are wanted, and returns how many rows are in it.
func fillMany(t testing.TB, log changelog.Log, past bool) (rows int64) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	var batch []changelog.Change
	for i := range 120 {
		text := make([]byte, 1+i*i*4%4000) // of which no database compresses half
		_, _ = random.Read(text)
		value := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%d","namespace":"default"},"data":{"a":"%x"}}`, i, text)
		batch = append(batch, changelog.Change{Key: fmt.Sprintf("%sc%d", prefix, i), Value: value})
	}
	for turn := range int64(3) {
		a, err := log.Append(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			if batch[i].Expect = a.Results[i].Revision; batch[i].Expect == 0 {
				t.Fatalf("%+v", a.Results[i])
			}
		}
		rows += int64(len(batch))
		if turn == 1 && past { // the first third goes to table past
			c, err := log.Compact(t.Context(), 2*int64(len(batch)), 10000, changelog.NewRetention(changelog.Rule{Resource: "*", For: changelog.KeepForever}))
			if err != nil || c.Kept == 0 {
				t.Fatalf("%+v, %v", c, err)
			}
			rows -= c.Deleted
		}
	}
	return rows
}

// What is written into a page.
var rubbish = []struct {
	name  string
	write func(page []byte, r *rand.Rand)
}{
	{"zeros", func(page []byte, _ *rand.Rand) { clear(page) }},
	{"noise", func(page []byte, r *rand.Rand) {
		for i := range page {
			page[i] = byte(r.Uint32())
		}
	}},
	{"noise in its head", func(page []byte, r *rand.Rand) {
		for i := range 16 {
			page[i] ^= byte(1 + r.IntN(255))
		}
	}},
	{"half of it", func(page []byte, _ *rand.Rand) { copy(page[len(page)/2:], bytes.Repeat([]byte{0xff}, len(page)/2)) }},
}

// TestPagesSQLite damages each page of a SQLite file. All of it is noticed, beside a plinth that serves the file and
// by who looks at the file alone, and what is in other pages is searched.
func TestPagesSQLite(t *testing.T) {
	dsn := logtest.SQLite(t)
	log := openLog(t, dsn)
	rows := fillMany(t, log, true)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(dsn, "sqlite://")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.BigEndian.Uint16(sound[16:]))
	random := rand.New(rand.NewPCG(1, 2))
	pages, done, most := len(sound)/size, 0, 0
	for n := 1; n <= pages; n++ {
		if n > 14 && n%7 > 0 { // most are parts of values
			continue
		}
		what := rubbish[n%len(rubbish)]
		damaged := bytes.Clone(sound)
		what.write(damaged[(n-1)*size:n*size], random)
		name := fmt.Sprintf("%s in page %d of %d", what.name, n, pages)
		if n > 1 && isEmpty(sound[(n-1)*size:]) {
			continue
		}
		done++
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
		if err != nil {
			continue // it is noticed
		}
		report, err := Log(t.Context(), source, Options{})
		if err := source.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || report.Problems == 0 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if report.Rows >= rows*9/10 {
			most++
		}
		if done%8 == 0 {
			if err := os.WriteFile(path, sound, 0o600); err != nil {
				t.Fatal(err)
			}
			served(t, dsn, path, damaged, name)
		}
	}
	if done < 40 || most < done/2 {
		t.Errorf("of %d pages of %d, %d left at least nine tenths of the rows readable", done, pages, most)
	}
}

// isEmpty says that a page is the leaf of a b-tree without a row, most of which nobody reads.
func isEmpty(page []byte) bool {
	return (page[0] == 10 || page[0] == 13) && binary.BigEndian.Uint16(page[3:]) == 0
}

// served has a log open while its file is damaged.
func served(t *testing.T, dsn, path string, damaged []byte, name string) {
	t.Helper()
	log := openLog(t, dsn)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The first page has the stamp of who has the file open.
	if _, err := f.WriteAt(damaged[4096:], 4096); err != nil {
		t.Fatal(err)
	}
	report, err := Log(t.Context(), log, Options{})
	if err != nil || report.Problems == 0 {
		t.Errorf("%s, served: %+v, %v", name, report, err)
	}
	_ = log.Close() // which may say that the file is damaged
}
