//go:build !linux

package memory

// unmapProgram is for Linux.
func unmapProgram() {}
