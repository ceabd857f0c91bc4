package server

import (
	"errors"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

func TestBoundTo(t *testing.T) {
	for memory, want := range map[int64]sqlstore.Options{
		0:           {},
		LeastMemory: {StateBytes: 24 << 20, WindowBytes: 8 << 20, IndexBytes: 8 << 20},
		512 << 20:   {StateBytes: 216 << 20, WindowBytes: 32 << 20, IndexBytes: 32 << 20},
		16 << 30:    {StateBytes: (16<<30 - 80<<20) / 2, WindowBytes: 32 << 20, IndexBytes: 64 << 20},
	} {
		got := boundTo(memory, sqlstore.Options{})
		if got.StateBytes != want.StateBytes || got.WindowBytes != want.WindowBytes || got.IndexBytes != want.IndexBytes {
			t.Errorf("%d MiB: %d, %d and %d bytes", memory>>20, got.StateBytes, got.WindowBytes, got.IndexBytes)
		}
	}
	for _, memory := range []int64{-1, 1, LeastMemory - 1} {
		if err := New(Config{Memory: memory}).Open(t.Context()); !errors.Is(err, ErrConfig) {
			t.Errorf("%d bytes: %v", memory, err)
		}
	}
}
