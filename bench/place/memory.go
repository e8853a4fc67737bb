package place

import (
	"os"
	"strconv"
	"strings"
)

// Memory is how many bytes of the machine's memory the service holds, 0 when it
// is not known.
func (s *Service) Memory() int64 {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/statm")
	fields := strings.Fields(string(statm))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
