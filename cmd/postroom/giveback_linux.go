package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
)

// giveBack returns to the system what only the start needed: free memory, and the
// pages of the program's own file, of which the start reads more than the service
// does. A page that is used again is mapped again, out of the file or the page
// cache. What fails of it costs nothing but memory.
func giveBack() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }() // it was only read
	var from, to uintptr                // of the program's own pages; 0 for others
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		var begin, end uintptr
		var may string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &may); n == 3 {
			from, to = begin, end
			if may != "r--p" && may != "r-xp" || !strings.HasSuffix(line, " "+self) {
				from = 0
			}
			continue
		}
		// Pages that the loader has written to, for a program that may lie anywhere
		// (PIE), are not those of the file any more.
		var written int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &written); n == 1 && written == 0 && from != 0 {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
