//go:build !unix

package atomicfile

import "os"

func keepOwner(*os.File, string) error { return nil }

// syncFolder does nothing: such systems do not write a folder to the disk by itself.
func syncFolder(string) error { return nil }
