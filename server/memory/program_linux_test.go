package memory

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-00403000 r--p 00000000 fe:00 10003329                           /bin/plinth
Size:                 12 kB
Anonymous:             0 kB
00403000-03181000 r-xp 00003000 fe:00 10003329                           /bin/plinth
Size:              46584 kB
Anonymous:             0 kB
03181000-062e9000 r--p 02d81000 fe:00 10003329                           /bin/plinth
Anonymous:             4 kB
062ec000-063fc000 rw-p 05eec000 fe:00 10003329                           /bin/plinth
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77                         /lib/libc.so.6
Anonymous:             0 kB
7f0000001000-7f0000002000 r--p 00000000 00:00 0
Anonymous:             0 kB
`

// Only pages are given back that are in the program's file as they are.
func TestUnchanged(t *testing.T) {
	want := []mapping{{0x400000, 0x403000}, {0x403000, 0x3181000}}
	if diff := cmp.Diff(want, unchanged(strings.NewReader(smaps), "/bin/plinth"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}

// The code is given back while it runs, and runs on.
func TestUnmapProgram(t *testing.T) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if len(unchanged(file, program)) == 0 {
		t.Error("no mapping of this program was found")
	}
	for range 100 {
		unmapProgram()
	}
}
