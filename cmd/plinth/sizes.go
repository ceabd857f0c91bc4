package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a number of bytes that can be written with a unit.
type byteSize int

// String implements pflag.Value.
func (b *byteSize) String() string {
	if n := int(*b); n > 0 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + "MiB"
	}
	return strconv.Itoa(int(*b))
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "size" }

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil || n < 1 {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 256MiB")
	}
	*b = byteSize(n)
	return nil
}

// memorySize is byteSize for a bound that may be 0: none.
type memorySize int64

// String implements pflag.Value.
func (m *memorySize) String() string {
	if *m == 0 {
		return ""
	}
	b := byteSize(*m)
	return b.String()
}

// Type implements pflag.Value.
func (m *memorySize) Type() string { return "size" }

// Set implements pflag.Value.
func (m *memorySize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil || n < 0 {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 512MiB")
	}
	if n > 0 && n < 1<<20 { // nothing runs in that; 512 is meant to be MiB
		return fmt.Errorf("that is %s: write a unit, such as 512MiB", countOf(int(n), "byte"))
	}
	*m = memorySize(n)
	return nil
}

// parseBytes reads a number of bytes that may have a unit.
func parseBytes(text string) (int64, error) {
	number, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number, shift = before, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err == nil && (n > math.MaxInt>>shift || n < math.MinInt>>shift) {
		err = strconv.ErrRange
	}
	return n << shift, err
}

// quotaSize is a number of bytes that may be 0 or negative.
type quotaSize int64

// String implements pflag.Value.
func (q *quotaSize) String() string { return strconv.FormatInt(int64(*q), 10) }

// Type implements pflag.Value.
func (q *quotaSize) Type() string { return "size" }

// Set implements pflag.Value.
func (q *quotaSize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 8GiB")
	}
	*q = quotaSize(n)
	return nil
}
