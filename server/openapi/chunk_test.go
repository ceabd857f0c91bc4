package openapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// TestJoinedChunks reads joined chunks with a gzip reader, which checks the sum and the size.
func TestJoinedChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, sizes := range [][]int{{}, {0}, {1}, {0, 0}, {1, 1}, {70_000}, {3, 0, 1 << 16, 1, 12345}, {255, 256, 257, 1<<20 + 1}} {
		var want []byte
		var b body
		for _, size := range sizes {
			text := make([]byte, size)
			for i := range text {
				text[i] = "abcdefgh"[random.IntN(8)]
			}
			want = append(want, text...)
			b = append(b, deflate(text))
		}
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			if got, err := b.read(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("plain: %d bytes of %d: %v", len(got), len(want), err)
			}
			pieces, length := b.gzip()
			joined := bytes.Join(pieces, nil)
			if len(joined) != length {
				t.Errorf("%d bytes announced, %d are there", length, len(joined))
			}
			z, err := gzip.NewReader(bytes.NewReader(joined))
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false) // it is one
			if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
				t.Errorf("gzip: %d bytes of %d: %v", len(got), len(want), err)
			}
		})
	}
}
