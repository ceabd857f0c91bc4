//go:build !linux

package sqlite

import "os"

func fillFile(f *os.File, size int64) error { return writeZeros(f, size) }
