package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusals has clients that fail one after the other.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var r refusals
		log, client := slog.New(slog.NewTextHandler(&out, nil)), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
		for _, err := range []error{errors.New("first"), errors.New("second"), fmt.Errorf("read: %w", io.EOF), errors.New("third")} {
			r.note(log, client, err)
		}
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "client=192.0.2.1:1 err=first others=0") {
			t.Errorf("logged %s", text)
		}
		out.Reset()
		time.Sleep(refusedEvery)
		r.note(log, client, errors.New("later"))
		if text := out.String(); !strings.Contains(text, "err=later others=2") {
			t.Errorf("logged %s", text)
		}
	})
}
