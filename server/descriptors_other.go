//go:build !unix

package server

// mostOpenFiles does not know.
func mostOpenFiles() (most uint64, known bool) { return 0, false }
