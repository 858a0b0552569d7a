package proxy

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// restoreInterval is how often the record of a running process is looked for.
const restoreInterval = 2 * time.Second

// restore brings back what was deleted under a running Envoy, say by a cleaner
// of temporary files, and what keeps a second supervisor and the next run from
// starting another Envoy beside it: the directory, the lock, and the record.
func (s *Supervisor) restore(p *process, hash string) {
	if _, err := os.Lstat(s.path(recordFile)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	err := privateDir(s.cfg.Dir)
	if err == nil {
		err = s.lock.retake(s.path(lockFile))
	}
	if err == nil {
		err = s.remember(p, hash)
	}
	switch {
	case err == nil:
		s.log.Warn("files of a running envoy were deleted; it serves on", "pid", p.pid, "directory", s.cfg.Dir)
	case !s.unrecorded:
		s.log.Warn("envoy would not be adopted by a later run", "pid", p.pid, "error", err)
	}
	s.unrecorded = err != nil
}
