package logs

import (
	"bytes"
	"context"
	"time"

	"github.com/sledctl/sledctl/host"
)

// pause is how often a log is looked at that is followed.
const pause = 500 * time.Millisecond

// Follower reads a log as it grows.
type Follower struct {
	Files host.Files
	// Log is where the instance's log is now; false: nowhere.
	Log func(context.Context) (Log, bool)

	log    Log
	seen   host.Info
	offset int64 // behind the last whole line that was read
}

// Next is what has been added since the last Next, in whole lines: at first all that is
// there. It waits until there is some. Another says that it is of another file than before: the
// zone was made again, or the log rotated. The error is the context's.
func (f *Follower) Next(ctx context.Context) (data []byte, another bool, err error) {
	for ; ; err = wait(ctx) {
		if err != nil {
			return nil, false, err
		}
		log, there := f.Log(ctx)
		if !there {
			continue
		}
		first := f.log == Log{}
		other := log != f.log
		if other {
			f.log, f.offset, f.seen = log, 0, host.Info{}
		}
		data, info, err := f.log.after(f.Files, f.offset)
		if err != nil {
			continue // its zone is being made, or goes
		}
		if !other && (info.Inode != f.seen.Inode || info.Size < f.offset) {
			other, f.offset = true, 0
			if data, info, err = f.log.after(f.Files, 0); err != nil {
				continue
			}
		}
		f.seen = info
		whole := data[:bytes.LastIndexByte(data, '\n')+1]
		f.offset += int64(len(whole))
		if len(whole) > 0 || first {
			return whole, other && !first, nil
		}
	}
}

func wait(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
