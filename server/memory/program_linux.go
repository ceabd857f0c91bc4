package memory

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapProgram gives back the pages of the program's own code and constants. Most of them were
// needed at the start only. The kernel maps those that are needed again from the file, 16 at a
// time, without reading it as long as they are in its cache.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer file.Close()
	for _, m := range unchanged(file, program) {
		// An error leaves the pages where they are.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// unchanged returns the mappings of a program that cannot be written to and have no page that
// differs from the file: what the linker has adjusted at the start would be lost. smaps is what
// the kernel says in the file of this name.
func unchanged(smaps io.Reader, program string) (all []mapping) {
	var at mapping
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 2 && fields[0] == "Anonymous:":
			if candidate && fields[1] == "0" {
				all = append(all, at)
			}
			candidate = false
		case len(fields) >= 6 && !strings.HasSuffix(fields[0], ":"):
			at, candidate = parseMapping(fields[0])
			candidate = candidate && fields[1][0] == 'r' && fields[1][1] == '-' && fields[1][3] == 'p' && fields[5] == program
		}
	}
	return all
}

// parseMapping reads FROM-TO.
func parseMapping(text string) (m mapping, ok bool) {
	from, to, ok := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if !ok || err != nil {
		return m, false
	}
	last, err := strconv.ParseUint(to, 16, strconv.IntSize)
	if err != nil || last <= first {
		return m, false
	}
	return mapping{uintptr(first), uintptr(last)}, true
}
