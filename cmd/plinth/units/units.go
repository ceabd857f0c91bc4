package units

import (
	"fmt"
	"strconv"
	"time"
)

// Bytes writes a number of bytes.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, i := float64(n), 0
	for x >= 1024 && i < len(units)-1 {
		x, i = x/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return strconv.FormatFloat(x, 'f', decimals(x), 64) + " " + units[i]
}

// decimals is how many digits after the point are worth to be read.
func decimals(x float64) int {
	switch {
	case x < 10:
		return 2
	case x < 100:
		return 1
	}
	return 0
}

// Count writes a number with spaces between thousands.
func Count(n any) string {
	text := fmt.Sprint(n) // an int or an int64
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// Seconds writes a duration.
func Seconds(x float64) string {
	switch {
	case x == 0:
		return "0 s"
	case x < 0.001:
		return strconv.FormatFloat(x*1e6, 'f', 0, 64) + " µs"
	case x < 1:
		return strconv.FormatFloat(x*1e3, 'f', decimals(x*1e3), 64) + " ms"
	case x < 120:
		return strconv.FormatFloat(x, 'f', decimals(x), 64) + " s"
	}
	return time.Duration(x * float64(time.Second)).Round(time.Second).String()
}
