package main

import "testing"

func TestQuotaSize(t *testing.T) {
	for text, want := range map[string]quotaSize{"0": 0, "-1": -1, "8589934592": 8 << 30, "8GiB": 8 << 30} {
		var q quotaSize
		if err := q.Set(text); err != nil || q != want {
			t.Errorf("%s: %d, %v", text, q, err)
		}
	}
	for _, text := range []string{"", "2GB", "9999999999GiB", "-9999999999GiB", "1.5GiB"} {
		if err := new(quotaSize).Set(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{"1": 1, "512KiB": 512 << 10, "256MiB": 256 << 20, "2GiB": 2 << 30} {
		var b byteSize
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1MB", "9999999999GiB", "1.5GiB"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
