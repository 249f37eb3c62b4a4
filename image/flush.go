package image

// flushEvery is how much is written, in bytes, before the device is told to flush it: enough that the
// flushes cost nothing, and little next to a disk.
const flushEvery = 64 << 20

// flusher flushes a device while more is written to it. One flush at the end would find in memory
// what the disks could have taken meanwhile. To a device that has each write on its disks before it returns, as a zvol
// does whose write cache is off, a flush is nothing.
type flusher struct {
	waits int64         // bytes written since a flush was asked for
	ask   chan struct{} // has room for one: a flush takes along what was written before it began
	ended chan error
}

func newFlusher(sync func() error) *flusher {
	f := &flusher{ask: make(chan struct{}, 1), ended: make(chan error, 1)}
	go func() {
		var err error
		for range f.ask {
			if err == nil { // The system may tell only one flush of what was lost.
				err = sync()
			}
		}
		f.ended <- err
	}()
	return f
}

// wrote notes that so much was written. It does not wait.
func (f *flusher) wrote(n int) {
	if f.waits += int64(n); f.waits < flushEvery {
		return
	}
	select {
	case f.ask <- struct{}{}:
		f.waits = 0
	default:
	}
}

// end begins the last flush, if there is to be one. What ended gives is the error of any.
func (f *flusher) end(last bool) {
	if last {
		f.ask <- struct{}{}
	}
	close(f.ask)
}
