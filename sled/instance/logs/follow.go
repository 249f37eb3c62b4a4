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

// Follower reads logs as they grow.
type Follower struct {
	Files host.Files
	// Logs are where the logs are now, at most one of an instance's service.
	Logs func(context.Context) []Log
	// Total is how much of all logs is read at once, at first from their ends, in bytes; 0: of
	// each as much as Log.Read reads at most.
	Total int

	tails map[subject]*tail
	order []*tail // in which they were first seen
}

// subject is what a log is of, wherever it lies.
type subject struct{ instance, service string }

// tail is a log that is read.
type tail struct {
	log    Log
	inode  uint64
	offset int64 // behind the last whole line that was read
	begun  bool  // something was read, of this log or of one before it
}

// Next is what has been added since the last Next, in whole lines: at first all that is
// there. It waits until there is some. The error is the context's.
func (f *Follower) Next(ctx context.Context) ([]Chunk, error) {
	first := f.tails == nil
	if first {
		f.find(ctx)
	}
	for rounds := 1; ; rounds++ {
		chunks, lost := f.read()
		if lost || len(f.tails) == 0 || len(chunks) == 0 && rounds%silent == 0 { // a zone is gone, or being made
			if f.find(ctx) {
				more, _ := f.read()
				chunks = append(chunks, more...)
			}
		}
		if len(chunks) > 0 || first && len(f.tails) > 0 {
			return chunks, nil
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

// find looks where the logs are now; true: one is somewhere else, or new.
func (f *Follower) find(ctx context.Context) (moved bool) {
	if f.tails == nil {
		f.tails = map[subject]*tail{}
	}
	for _, log := range f.Logs(ctx) {
		key := subject{log.Instance, log.Service}
		t := f.tails[key]
		if t == nil {
			t = &tail{}
			f.tails[key], f.order = t, append(f.order, t)
		}
		if t.log != log {
			t.log, t.inode, t.offset = log, 0, 0
			moved = true
		}
	}
	return moved
}

// read reads on in all logs; lost: one cannot be read.
func (f *Follower) read() (chunks []Chunk, lost bool) {
	limit := int64(most)
	if f.Total > 0 {
		limit = int64(Share(f.Total, len(f.order)))
	}
	for _, t := range f.order {
		c, ok := t.read(f.Files, limit)
		lost = lost || !ok
		if len(c.Data) > 0 {
			chunks = append(chunks, c)
		}
	}
	return chunks, lost
}

// read reads on, through a view that cannot leave the zone.
func (t *tail) read(files host.Files, limit int64) (c Chunk, ok bool) {
	c.Log = t.log
	root, err := files.In(t.log.Root)
	if err != nil {
		return c, false
	}
	info, err := root.Stat(t.log.File)
	if err != nil {
		return c, false
	}
	if other := info.Inode != t.inode || info.Size < t.offset; other {
		t.inode, t.offset, c.Another = info.Inode, max(info.Size-limit, 0), t.begun
		c.Cut = t.offset > 0
	}
	data, _, err := host.After(root, t.log.File, t.offset, limit)
	if err != nil {
		return c, false
	}
	c.Data = data[:bytes.LastIndexByte(data, '\n')+1]
	if len(c.Data) == 0 && int64(len(data)) == limit { // a line that is longer: its parts are lines
		c.Data = data
	}
	t.offset += int64(len(c.Data))
	t.begun = true
	return c, true
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
