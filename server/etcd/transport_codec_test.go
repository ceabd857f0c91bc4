package etcd

import "testing"

// TestBuffers wants no message to hold more than four times its size while it waits for its client.
func TestBuffers(t *testing.T) {
	for size := 1 << 10; size <= 2<<20; size += size/3 + 1 {
		b := buffers.Get(size)
		if len(*b) != size || cap(*b) > 4*size {
			t.Errorf("%d bytes in a buffer of %d", len(*b), cap(*b))
		}
		buffers.Put(b)
	}
}
