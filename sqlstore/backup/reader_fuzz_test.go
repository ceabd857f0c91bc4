package backup_test

import (
	"bytes"
	"crypto/sha256"
	"math"
	"runtime"
	"testing"

	"encoding/binary"
)

// FuzzRead reads anything, also what has the right checksum.
func FuzzRead(f *testing.F) {
	file := random(3, 5).write(f)
	f.Add(file, false)
	f.Add(file[:len(file)-sha256.Size], true)
	f.Add([]byte("PLNTHBAK\x01\x80\x80\x80\x08\x01"), false)
	f.Fuzz(func(t *testing.T, file []byte, sum bool) {
		if sum {
			digest := sha256.Sum256(file)
			file = append(bytes.Clone(file), digest[:]...)
		}
		_, _ = read(bytes.NewReader(file))
	})
}

// A backup that lies about its lengths costs no more memory than a chunk may have.
func TestReadMemory(t *testing.T) {
	for _, length := range []uint64{16 << 20, 16<<20 + 1, 1 << 40, math.MaxUint64} {
		file := binary.AppendUvarint(append([]byte("PLNTHBAK"), 1), length)
		file = append(binary.AppendUvarint(file, length), make([]byte, 1000)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := read(bytes.NewReader(file)); err == nil {
			t.Errorf("a chunk of %d bytes was read", length)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 40<<20 {
			t.Errorf("a chunk of %d bytes that is not there took %d", length, used)
		}
	}
}
