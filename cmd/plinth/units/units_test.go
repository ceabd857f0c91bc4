package units

import "testing"

// TestSeconds writes durations with their units.
func TestSeconds(t *testing.T) {
	for x, want := range map[float64]string{0: "0 s", 0.00025: "250 µs", 0.0042: "4.20 ms", 0.256: "256 ms", 1.5: "1.50 s", 61: "61.0 s", 3661: "1h1m1s"} {
		if got := Seconds(x); got != want {
			t.Errorf("%v: %s, not %s", x, got, want)
		}
	}
}

// TestBytes writes sizes with three digits.
func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 346_112: "338 KiB", 9_961_472: "9.50 MiB", 71_511_000_000: "66.6 GiB", 3 << 50: "3072 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}

// TestCount writes numbers in groups of three digits.
func TestCount(t *testing.T) {
	for n, want := range map[any]string{0: "0", 999: "999", 1000: "1\u202f000", int64(1234567): "1\u202f234\u202f567", -1000: "-1\u202f000", -100: "-100"} {
		if got := Count(n); got != want {
			t.Errorf("%v: %s, not %s", n, got, want)
		}
	}
}
