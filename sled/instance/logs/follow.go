package logs

import (
	"bytes"
	"context"
	"time"

	"github.com/sledctl/sledctl/host"
)

// pause is how often a log is looked at that is followed.
const pause = 500 * time.Millisecond

// silent is after how many pauses without a line it is asked where the log is now.
const silent = 20

// Follower reads a log as it grows.
type Follower struct {
	Files host.Files
	// Log is where the instance's log is now; false: nowhere.
	Log func(context.Context) (Log, bool)

	log    Log
	inode  uint64
	offset int64 // behind the last whole line that was read
}

// Next is what has been added since the last Next, in whole lines: at first all that is
// there. It waits until there is some. Another says that it is of another file than before: the
// zone was made again, or the log rotated. The error is the context's.
func (f *Follower) Next(ctx context.Context) (data []byte, another bool, err error) {
	first := f.log == (Log{})
	for rounds := 0; ; err = wait(ctx) {
		if err != nil {
			return nil, false, err
		}
		whole, other, read := f.read()
		if rounds++; !read || len(whole) == 0 && rounds%silent == 0 { // there is no zone, or it is being made, or goes
			var found bool
			if whole, other, found = f.find(ctx); !found {
				continue
			}
		}
		if len(whole) > 0 || first {
			return whole, other && !first, nil
		}
	}
}

// find looks where the log is now, and reads it if that is somewhere else.
func (f *Follower) find(ctx context.Context) (whole []byte, other, read bool) {
	log, there := f.Log(ctx)
	if !there || log == f.log {
		return nil, false, false
	}
	f.log, f.inode, f.offset = log, 0, 0
	return f.read()
}

// read reads on, through a view that cannot leave the zone.
func (f *Follower) read() (whole []byte, other, read bool) {
	if f.log == (Log{}) {
		return nil, false, false
	}
	root, err := f.Files.In(f.log.Root)
	if err != nil {
		return nil, false, false
	}
	info, err := root.Stat(f.log.File)
	if err != nil {
		return nil, false, false
	}
	if other = info.Inode != f.inode || info.Size < f.offset; other {
		f.inode, f.offset = info.Inode, max(info.Size-most, 0)
	}
	data, _, err := host.After(root, f.log.File, f.offset, most)
	if err != nil {
		return nil, false, false
	}
	whole = data[:bytes.LastIndexByte(data, '\n')+1]
	f.offset += int64(len(whole))
	return whole, other, true
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
