package etcd

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestTransportUnfinished has clients that begin requests and never send the rest, or never read the answers. Others
// are answered, memory stays bounded, and all is given back at the end.
func TestTransportUnfinished(t *testing.T) {
	m := startMemberOn(t, logtest.Postgres(t), sqlstore.Options{History: -1}, Options{})
	m.transport.out.bound(8<<20, 16<<20)
	if _, err := m.client.Put(patiently(t), "a", strings.Repeat("v", 1_000_000)); err != nil {
		t.Fatal(err)
	}
	before := used()
	var conns []net.Conn
	for i := range 8 {
		path, message, end := "/etcdserverpb.KV/Put", []byte{0, 0, 0, 10, 0, 10}, false // 2,560 bytes, of which one comes
		if i%2 == 1 {
			path, message, end = "/etcdserverpb.KV/Range", []byte{0, 0, 0, 0, 3, 10, 1, 'a'}, true
		}
		conns = append(conns, beginRequests(t, strings.TrimPrefix(m.url, "http://"), path, message, end, 500))
	}
	awaitTrue(t, "connections that do not read end", func() bool { return m.transport.out.lost() >= 4 })
	var slowest time.Duration
	for range 100 {
		begun := time.Now()
		if _, err := m.client.Put(patiently(t), "b", "x"); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(begun))
	}
	now := used()
	t.Logf("a put takes %v at most, memory has grown by %d MiB, and there are %d goroutines more", slowest, (now.bytes-before.bytes)>>20, now.goroutines-before.goroutines)
	// Of connections that have just ended, handlers may still have answers in their hands.
	awaitTrue(t, "memory has grown by 200 MiB at most", func() bool { return used().bytes-before.bytes <= 200<<20 })
	for _, c := range conns {
		c.Close()
	}
	checkUsage(t, before)
}

// beginRequests sends n requests on a connection of its own, whose answers it does not read. With end they are whole.
func beginRequests(t *testing.T, address, path string, message []byte, end bool, n int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, c) // takes frames, and opens no window
	f := http2.NewFramer(c, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := range n {
		block.Reset()
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "plinth"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
			_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		stream := uint32(2*i + 1)
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		if err == nil {
			err = f.WriteData(stream, end, message)
		}
		if err != nil {
			break // the connection was ended
		}
	}
	return c
}
