package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

// createLarge creates n ConfigMaps of about size bytes; every tenth has a label.
func (h *harness) createLarge(n, size int) {
	h.t.Helper()
	const clients = 16
	value := strings.Repeat("v", size)
	codes := atOnce(clients, func(c int) (last answer) {
		for i := c; i < n; i += clients {
			label := ""
			if i%10 == 0 {
				label = `,"labels":{"tenth":"yes"}`
			}
			last = h.do("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"c%05d"%s},"data":{"key":%q}}`, i, label, value))
			if last.code != 201 {
				return last
			}
		}
		return last
	})
	for _, code := range codes {
		if code != 201 {
			h.t.Fatalf("a create answered %d", code)
		}
	}
}

// inMemory and inLog are options with which all values are in memory, and none for longer than one use.
var inMemory, inLog = sqlstore.Options{StateBytes: 1 << 40}, sqlstore.Options{StateBytes: 1, WindowBytes: 1}

// TestListGathered compares lists whose values are read from the log while they are written with the same lists
// from memory, byte for byte.
func TestListGathered(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		compareGathered(t, d.Fresh(t), []string{"application/json"})
	})
}

// TestListGatheredEncodings does the same in every encoding. What is made of values is the same on all dialects.
func TestListGatheredEncodings(t *testing.T) {
	compareGathered(t, logtest.SQLite(t), []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", asTable,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	})
}

// compareGathered compares lists of each of accepts with those from memory.
func compareGathered(t *testing.T, dsn string, accepts []string) {
	var want map[string]string
	var past int64
	t.Run("from memory", func(t *testing.T) {
		h := newHarnessWith(t, dsn, inMemory, rest.Options{})
		h.createLarge(700, 4<<10) // more than a list gathers, and than a Table has in one piece
		past = h.store.Revision()
		h.do("PUT", configMaps+"/c00010", configMap("c00010", "changed")).want(200)
		h.do("DELETE", configMaps+"/c00011", "").want(200)
		want = h.lists(past, accepts)
		wantRowsOfPages(t, h, h.do("GET", configMaps, "", "Accept", asTable).want(200).body)
	})
	h := newHarnessWith(t, dsn, inLog, rest.Options{})
	h.untilAway(699)
	for name, got := range h.lists(past, accepts) {
		if got != want[name] {
			t.Errorf("%s: %d bytes differ from the %d of memory: %.300q and %.300q", name, len(got), len(want[name]), got, want[name])
		}
	}
}

var ageOfRow = regexp.MustCompile(`"\d+[smh][^"]*"\s*\]`)

// lists returns lists of all ConfigMaps of createLarge, and of some of them, as each of accepts has them, and what a watch
// begins with, each below a name that says which it is. Ages, which go on, are left out.
func (h *harness) lists(past int64, accepts []string) map[string]string {
	all := make(map[string]string)
	for i, query := range []string{
		"", "limit=600", "labelSelector=tenth", "labelSelector=tenth%21%3Dyes", "fieldSelector=metadata.name%3Dc00012", "pretty=1",
		"includeObject=Object", "resourceVersionMatch=Exact&resourceVersion=" + fmt.Sprint(past),
	} {
		for _, accept := range accepts {
			for _, encoding := range []string{"identity", "gzip"} {
				if i > 0 && (encoding == "gzip" || strings.HasSuffix(accept, "yaml")) {
					continue // once is enough of what takes long
				}
				a := h.do("GET", configMaps+"?"+query, "", "Accept", accept, "Accept-Encoding", encoding).want(200)
				name := query + " as " + accept + ", " + encoding
				for _, field := range []string{"Content-Type", "Content-Encoding"} {
					all[name+": "+field] = a.head.Get(field)
				}
				if encoding == "identity" {
					all[name] = ageOfRow.ReplaceAllString(a.body, `age]`)
				}
			}
		}
	}
	_, events := h.events("/api/v1/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 699)
	all["watch"] = strings.Join(events, "\n")
	return all
}

// wantRowsOfPages fails the test unless a Table of all ConfigMaps is the one that the pages of the list make together,
// of which each is made in one piece.
func wantRowsOfPages(t *testing.T, h *harness, body string) {
	t.Helper()
	var whole, pages metav1.Table
	if err := json.Unmarshal([]byte(body), &whole); err != nil {
		t.Fatal(err)
	}
	for token := ""; ; token = pages.Continue {
		var page metav1.Table
		a := h.do("GET", configMaps+"?limit=300&continue="+token, "", "Accept", asTable).want(200)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		rows := append(pages.Rows, page.Rows...)
		pages = page
		if pages.Rows = rows; pages.Continue == "" {
			break
		}
	}
	for _, table := range []*metav1.Table{&whole, &pages} {
		for i := range table.Rows {
			table.Rows[i].Cells[2] = "its age"
		}
	}
	if len(whole.Rows) != 699 || !reflect.DeepEqual(whole, pages) {
		t.Errorf("a Table of %d rows is not that of its pages, of %d", len(whole.Rows), len(pages.Rows))
	}
}

// farObjects is how many objects farAway has.
const farObjects = 700

// farAway has about 23 MB of objects, none of whose values is in memory.
func farAway(t *testing.T) *harness {
	h := newHarnessWith(t, "sqlite://"+t.TempDir()+"/plinth.db", inLog, rest.Options{})
	h.createLarge(farObjects, 32<<10)
	h.untilAway(farObjects)
	return h
}

// untilAway waits until the values of all objects, which are n at least, have left memory.
func (h *harness) untilAway(n int) {
	h.until("all values left memory", func() bool { return h.store.Stats().Away >= n })
}

// slowly begins a list of them, and reads only its first bytes.
func slowly(t *testing.T, h *harness, accept string) io.Reader {
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.http.URL+configMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10) // else the system takes the whole list
		}
		return conn, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	reads := int64(-1)
	h.until("the connection takes no more", func() bool {
		before := reads
		time.Sleep(200 * time.Millisecond)
		reads = h.store.Stats().ValueReads
		return reads == before
	})
	return resp.Body
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools have held goes at the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestListMemory expects that a list which is being written has only a part of its objects in memory.
func TestListMemory(t *testing.T) {
	h := farAway(t)
	for _, accept := range []string{
		"application/json", "application/json;pretty=1", "application/yaml", "application/vnd.kubernetes.protobuf",
		"application/json;as=Table;v=v1;g=meta.k8s.io",
	} {
		t.Run(accept, func(t *testing.T) {
			h.untilAway(farObjects)
			before := heap()
			body := slowly(t, h, accept)
			if grown := heap() - before; grown > 12<<20 {
				t.Errorf("%d MiB are in memory while a list of 23 MB is written", grown>>20)
			}
			if _, err := io.Copy(io.Discard, body); err != nil {
				t.Error(err)
			}
			runtime.KeepAlive(h)
		})
	}
}

// TestListBroken replaces and compacts the objects of lists that are being written. The clients must not take what they
// have for the whole.
func TestListBroken(t *testing.T) {
	h := farAway(t)
	bodies := map[string]io.Reader{}
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		bodies[accept] = slowly(t, h, accept)
	}
	for i := range farObjects {
		h.do("PUT", fmt.Sprintf("%s/c%05d", configMaps, i), configMap(fmt.Sprintf("c%05d", i), "changed")).want(200)
	}
	if err := h.store.CompactTo(t.Context(), h.store.Revision()); err != nil {
		t.Fatal(err)
	}
	for accept, body := range bodies {
		if n, err := io.Copy(io.Discard, body); err == nil {
			t.Errorf("%s ended after %d bytes as if it were whole", accept, n)
		}
	}
}
