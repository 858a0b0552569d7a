package bars

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// machine describes where figures come from.
func machine() string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	memory := ""
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		memory = fmt.Sprintf(", %d GiB", (uint64(info.Totalram)*uint64(info.Unit)+1<<29)>>30)
	}
	return fmt.Sprintf("%s, %d CPUs%s", model, cpus(), memory)
}

// cpus is what this process may use, which may be less than the machine has.
func cpus() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	return set.Count()
}
