//go:build !linux

package bars

import (
	"fmt"
	"runtime"
)

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
